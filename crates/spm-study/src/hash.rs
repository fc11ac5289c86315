//! SHA-256 as it is written down.

use sha2::{Digest, Sha256};

/// The digest of what went into `hash`, in hexadecimal.
pub fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_abc() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hexadecimal(Sha256::new_with_prefix("abc")), expected);
    }
}
