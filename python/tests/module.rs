//! What Python needs of the library. `.ci/python` takes the library that cargo builds for this test.

use std::fs;
use std::path::PathBuf;

/// The library beside the test programs of this build.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    let names = ["libspm_python.so", "libspm_python.dylib", "spm_python.dll"];
    let beside = |name: &&str| program.with_file_name(name);
    names.iter().map(beside).find(|path| path.exists()).expect("the library is built")
}

#[test]
fn the_library_has_the_function_that_python_calls() {
    let bytes = fs::read(library()).unwrap();
    let name = b"PyInit__native";
    assert!(bytes.windows(name.len()).any(|window| window == name));
}
