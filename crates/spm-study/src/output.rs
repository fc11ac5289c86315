//! Text on the standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

/// Prints a line, as [`print()`] does.
///
/// # Errors
/// The output cannot be written.
pub fn say(line: impl Display) -> io::Result<()> {
    print(&format!("{line}\n"))
}

/// Prints a text. Who has seen enough of it (`| head`) is no error.
///
/// # Errors
/// The output cannot be written.
pub fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
