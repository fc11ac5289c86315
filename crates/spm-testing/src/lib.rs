//! Reference products with error bounds, edge cases, seeded generators of sparse matrices, and the
//! solver of the examples, for the tests, the fuzz targets, the examples and the study of spm.
//!
//! A program that multiplies matrices does not need this crate.
//!
//! ```
//! use spm_formats::convert;
//! use spm_testing::{generate, reference};
//!
//! let a = generate::named("stencil5[n=3]")?.generate::<f64>()?;
//! let coo = convert::csr_to_coo(a.view());
//! let x = vec![1.0; 9];
//! // The product to check: for this x the sums of the rows.
//! let y: Vec<f64> = (0..9).map(|row| a.row(row).1.iter().sum()).collect();
//! assert!(reference::compare(&y, &reference::spmv(&coo, &x)).acceptable());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod allocations;
pub mod conjugate_gradient;
pub mod distributed;
pub mod edge_cases;
pub mod exact;
pub mod generate;
pub mod reference;
