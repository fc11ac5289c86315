//! Text on the standard output.

use std::io::{self, ErrorKind, Write};

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
