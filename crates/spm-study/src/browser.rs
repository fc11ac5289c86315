//! Shows a page to the user.

use std::path::Path;
use std::process::{Command, Stdio};

/// Opens a page in the user's browser; a line says so where the system has no program for that.
pub fn open(page: &Path) {
    let (program, arguments): (&str, &[&str]) = if cfg!(target_os = "windows") {
        ("cmd", &["/C", "start", ""])
    } else if cfg!(target_os = "macos") {
        ("open", &[])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(page).stdin(Stdio::null()).stdout(Stdio::null());
    match command.stderr(Stdio::null()).spawn() {
        // It may run as long as the browser does.
        Ok(_) => {}
        Err(error) => eprintln!("cannot open {}: {program}: {error}", page.display()),
    }
}
