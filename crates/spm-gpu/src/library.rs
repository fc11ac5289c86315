//! Where libraries that are opened at run time are looked for.

use std::env;
use std::path::{Path, PathBuf};

use libloading::Library;

use crate::driver::with_causes;

/// The struct `Functions` of a library's functions, each of which returns a status, and of the one that has the text
/// of a status. Optional ones are those that some versions lack.
macro_rules! functions {
    (
        $(#[$attribute:meta])*
        $vis:vis $message:ident
        required { $($name:ident($($type:ty),*);)* }
        optional { $($optional:ident($($optional_type:ty),*);)* }
    ) => {
        $(#[$attribute])*
        #[allow(non_snake_case)]
        $vis struct Functions {
            $($vis $name: unsafe extern "C" fn($($type),*) -> std::ffi::c_int,)*
            $($vis $optional: Option<unsafe extern "C" fn($($optional_type),*) -> std::ffi::c_int>,)*
            $message: unsafe extern "C" fn(std::ffi::c_int) -> *const std::ffi::c_char,
        }

        impl Functions {
            /// # Safety
            /// The library's functions of these names have these signatures.
            unsafe fn load(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the caller's promise.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!(stringify!($name), "\0"))?,)*
                        $($optional:
                            library.get(concat!(stringify!($optional), "\0")).ok().map(|f| *f),)*
                        $message: *library.get(concat!(stringify!($message), "\0"))?,
                    })
                }
            }
        }
    };
}
pub(crate) use functions;

/// A library, and the names of its file.
pub(crate) struct Search {
    /// The variable that names the file or its folder.
    pub(crate) variable: &'static str,
    /// How every name of the file begins.
    pub(crate) prefix: &'static str,
    /// Names of the file, newest first.
    pub(crate) names: &'static [&'static str],
    /// Folders of PyPI's packages below `site-packages`.
    pub(crate) packages: &'static [&'static str],
    /// What to install.
    pub(crate) install: &'static str,
}

impl Search {
    /// The first library that `load` takes, or why there is none.
    ///
    /// Looked for, in this order: the file or folder that the variable names, the loader's own search
    /// (LD_LIBRARY_PATH, the system's folders), /usr/local/cuda*/lib64, and the folders of PyPI's packages
    /// below `$VIRTUAL_ENV` and the usual site-packages.
    pub(crate) fn find<L>(
        &self,
        load: impl Fn(Library, &Path) -> Result<L, String>,
    ) -> Result<L, String> {
        let mut reason = None;
        for path in self.candidates() {
            let error = match self.open(&path).and_then(|library| load(library, &path)) {
                Ok(library) => return Ok(library),
                Err(error) => error,
            };
            // The first is what the variable names, and a file that is there says more than one that
            // is not.
            if reason.is_none() || path.is_file() {
                reason = Some(error);
            }
        }
        let (reason, Self { install, variable, .. }) = (reason.unwrap_or_default(), self);
        Err(format!("{reason}; install {install}, or set {variable} to the file or its folder"))
    }

    fn open(&self, path: &Path) -> Result<Library, String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.starts_with(self.prefix) {
            return Err(format!("{} is no file {}*", path.display(), self.prefix));
        }
        // SAFETY: opening a library runs its initialisers, as in every program that uses it. What has this
        // name in the places that are looked at is trusted to be it, as by the system's loader.
        unsafe { Library::new(path) }.map_err(|error| with_causes(&error))
    }

    fn candidates(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        if let Some(given) = env::var_os(self.variable).map(PathBuf::from) {
            if given.is_dir() {
                paths.extend(self.in_folder(&given));
            } else {
                paths.push(given);
            }
        }
        paths.extend(self.names.iter().map(PathBuf::from));
        for folder in entries(Path::new("/usr/local"), "cuda") {
            paths.extend(self.in_folder(&folder.join("lib64")));
        }
        for site in site_packages() {
            for package in self.packages {
                paths.extend(self.in_folder(&site.join(package)));
            }
        }
        paths
    }

    /// The names that exist in a folder.
    fn in_folder(&self, folder: &Path) -> impl Iterator<Item = PathBuf> {
        self.names.iter().map(|name| folder.join(name)).filter(|path| path.is_file())
    }
}

/// The names in `folder` that start with `prefix`, in descending order.
fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.reverse();
    found
}

fn site_packages() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> =
        env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter().collect();
    roots.extend(["/usr/local", "/usr"].map(PathBuf::from));
    let mut sites = Vec::new();
    for python in roots.iter().flat_map(|root| entries(&root.join("lib"), "python3")) {
        sites.extend(["site-packages", "dist-packages"].map(|name| python.join(name)));
    }
    sites
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: Search = Search {
        variable: "SPM_NO_SUCH_LIBRARY",
        prefix: "libspm_no_such.",
        names: &["libspm_no_such.so"],
        packages: &[],
        install: "it",
    };

    #[test]
    fn a_file_of_another_name_is_not_opened() {
        // The C library, which every program has open: opening it would succeed.
        let error = SEARCH.open(Path::new("libc.so.6")).expect_err("it has another name");
        assert_eq!(error, "libc.so.6 is no file libspm_no_such.*");
    }

    #[test]
    fn the_reason_names_the_variable() {
        let error = SEARCH.find(|_, _| Ok(())).unwrap_err();
        let end = "install it, or set SPM_NO_SUCH_LIBRARY to the file or its folder";
        assert!(error.contains("libspm_no_such.so") && error.ends_with(end), "{error}");
    }
}
