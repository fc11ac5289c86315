//! The conversions on a real GPU against those of the host: the same bits, and the time of both.
//! Median of the times of whole calls, memory allocated anew by each.
//!
//! ```text
//! convert_check [--check-only] [--emulator] [--only NAME] [MATRIX...]
//!
//! MATRIX        a .mtx file, or a generator (default: a stencil)
//! --check-only  no timing, for compute-sanitizer
//! --emulator    on the emulator; implies --check-only
//! --only NAME   one conversion: csr-to-csc, coo-to-csr, csr-to-hll, csr-to-sell
//! ```

use std::process::ExitCode;
use std::time::Instant;

use spm_formats::convert::{coo_to_csr, csr_to_coo, csr_to_csc, csr_to_hll, csr_to_sell};
use spm_formats::matrix_market::{self, ReadOptions};
use spm_formats::{Csr, MemoryBudget};
use spm_gpu::Device;
use spm_gpu::transpose::convert::{self, DeviceCompressed, DeviceCoo};
use spm_testing::generate;

type AnyError = Box<dyn std::error::Error>;

/// Calls of which the median is taken.
const CALLS: usize = 7;

#[derive(Default)]
struct Options {
    timed: bool,
    only: Option<String>,
}

fn main() -> Result<ExitCode, AnyError> {
    let (mut options, mut emulated) = (Options { timed: true, only: None }, false);
    let mut matrices = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--check-only" => options.timed = false,
            "--emulator" => (emulated, options.timed) = (true, false),
            "--only" => options.only = Some(arguments.next().ok_or("--only needs a name")?),
            _ => matrices.push(argument),
        }
    }
    if matrices.is_empty() {
        matrices.push("stencil27[n=40]".to_owned());
    }
    let device = if emulated {
        Device::emulated(Default::default())
    } else {
        match Device::available() {
            Err(error) if error.is_absent() => {
                println!("no device: {error}");
                return Ok(ExitCode::SUCCESS);
            }
            device => device?,
        }
    };
    device.load_kernels()?;
    let mut right = true;
    for name in &matrices {
        right &= matrix(&device, name, &options)?;
    }
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(name: &str) -> Result<Csr<f64>, AnyError> {
    if std::path::Path::new(name).is_file() {
        return Ok(matrix_market::read_csr(name, &ReadOptions::default())?);
    }
    Ok(generate::named(name)?.generate()?)
}

/// Whether all conversions of one matrix are right.
fn matrix(device: &Device, name: &str, options: &Options) -> Result<bool, AnyError> {
    let csr = read(name)?;
    println!("\n{name}: {} x {}, {} entries", csr.rows(), csr.cols(), csr.nnz());
    let budget = MemoryBudget::unlimited();
    let (coo, on_device) =
        (csr_to_coo(csr.view()), DeviceCompressed::from_csr(device, csr.view())?);
    let triplets = DeviceCoo::from_coo(device, &coo)?;
    let mut right = true;
    right &= options.conversion(
        "csr-to-csc",
        || Ok(csr_to_csc(csr.view())),
        || Ok(convert::csr_to_csc(&on_device, &budget)?),
        |host, csc| Ok(arrays(csc)? == host.clone().into_arrays()),
    )?;
    right &= options.conversion(
        "coo-to-csr",
        || Ok(coo_to_csr(&coo)),
        || Ok(convert::coo_to_csr(&triplets, &budget)?),
        |host, csr| Ok(arrays(csr)? == host.clone().into_arrays()),
    )?;
    right &= options.conversion(
        "csr-to-hll",
        || Ok(csr_to_hll(csr.view(), 32, &budget)?),
        || Ok(convert::csr_to_hll(&on_device, 32, &budget)?),
        |host, hll| Ok(hll.to_host()? == *host),
    )?;
    for sigma in [1, 1024, csr.rows()] {
        right &= options.conversion(
            &format!("csr-to-sell[sigma={sigma}]"),
            || Ok(csr_to_sell(csr.view(), 32, sigma, &budget)?),
            || Ok(convert::csr_to_sell(&on_device, 32, sigma, &budget)?),
            |host, sell| Ok(sell.to_host()? == *host),
        )?;
    }
    Ok(right)
}

type Arrays = (Vec<u32>, Vec<u32>, Vec<f64>);

fn arrays(a: &DeviceCompressed<f64>) -> Result<Arrays, AnyError> {
    let (pointers, entries) = (a.pointers().len(), a.values().len());
    let mut arrays = (vec![0; pointers], vec![0; entries], vec![0.0; entries]);
    a.pointers().copy_to_slice(&mut arrays.0)?;
    a.indices().copy_to_slice(&mut arrays.1)?;
    a.values().copy_to_slice(&mut arrays.2)?;
    Ok(arrays)
}

impl Options {
    /// One conversion on both sides.
    fn conversion<H, D>(
        &self,
        name: &str,
        host: impl Fn() -> Result<H, AnyError>,
        device: impl Fn() -> Result<D, AnyError>,
        same: impl Fn(&H, &D) -> Result<bool, AnyError>,
    ) -> Result<bool, AnyError> {
        if self.only.as_ref().is_some_and(|only| !name.starts_with(only.as_str())) {
            return Ok(true);
        }
        let right = same(&host()?, &device()?)?;
        print!("{name:28} {}", if right { "same bits" } else { "WRONG" });
        if self.timed {
            let (host, device) = (median(host)?, median(device)?);
            print!("  host {host:9.3} ms  device {device:8.3} ms  {:6.1} times", host / device);
        }
        println!();
        Ok(right)
    }
}

/// Milliseconds of a call.
fn median<R>(call: impl Fn() -> Result<R, AnyError>) -> Result<f64, AnyError> {
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let start = Instant::now();
        let result = call()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        drop(result);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[CALLS / 2])
}
