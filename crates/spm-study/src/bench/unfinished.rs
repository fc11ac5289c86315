//! What a run was doing when its process ended: a case that kills the process (out of memory, a
//! fault of a driver) must not stop every later run with `--resume` at the same place.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// File name inside a results folder.
const FILE: &str = "unfinished.json";

/// Processes that may end in a piece of work before it is given up. One may be killed by its user.
const ATTEMPTS: u32 = 3;

/// The piece of work that is going on, on the disk.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    earlier: Option<Record>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    work: String,
    /// Processes that have begun it, this one included.
    attempts: u32,
}

impl Unfinished {
    /// Looks for what the last run in `folder` left unfinished.
    pub fn of(folder: &Path) -> Self {
        let path = folder.join(FILE);
        // A record that was cut off by the end of the process counts as none.
        let text = std::fs::read(&path).ok();
        let earlier = text.and_then(|text| serde_json::from_slice(&text).ok());
        Self { path, earlier }
    }

    /// Notes that `work` begins. `false`: too many processes have ended in it.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin(&mut self, work: &str) -> anyhow::Result<bool> {
        let before = self.earlier.take_if(|record| record.work == work);
        let attempts = before.map_or(0, |record| record.attempts);
        if attempts >= ATTEMPTS {
            return Ok(false);
        }
        let record = Record { work: work.to_owned(), attempts: attempts + 1 };
        std::fs::write(&self.path, serde_json::to_vec(&record)?)
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(true)
    }

    /// Notes that nothing is going on.
    pub fn end(&self) {
        // Left behind, it would name work that is recorded by now, and that is never asked again.
        let _ = std::fs::remove_file(&self.path);
    }

    /// What is recorded of work that was given up.
    pub fn reason() -> String {
        format!("given up: {ATTEMPTS} processes ended in it (out of memory?)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_ends_three_processes_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..ATTEMPTS {
            let mut run = Unfinished::of(folder.path());
            assert!(run.begin("a").unwrap());
        }
        let mut run = Unfinished::of(folder.path());
        assert!(!run.begin("a").unwrap());
        assert!(run.begin("b").unwrap());
        // Another piece of work came between: a starts anew.
        assert!(Unfinished::of(folder.path()).begin("a").unwrap());
        run.end();
        assert!(Unfinished::of(folder.path()).earlier.is_none());
    }
}
