//! What emulated devices offer beside the plans of kernels: conversions, padded matrices, the
//! procedures of the transpositions, events, times.

use std::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};
use spm_formats::CsrView;
use spm_formats::kernel::TransposeOutput;
use spm_gpu::transpose::convert::{self, DeviceCompressed, DeviceCoo};
use spm_gpu::transpose::primitives;
use spm_gpu::{
    Device, DeviceBuffer, DeviceCsc, DeviceHll, DeviceSell, Event, GpuError, Sampling, Stream,
    cusparse, time,
};
use spm_testing::reference::{self, computed_bits};

use super::device::Place;
use super::{budget, choose, compare, padded, size};
use crate::{Matrix, Triplets, vector};

pub(super) fn check(u: &mut Unstructured<'_>) -> Result<()> {
    let place = Place::arbitrary(u)?;
    match u.int_in_range(0..=5_u8)? {
        0 => conversions(u, &place),
        1 => padded_matrix(u, &place),
        2 => padded_plan(u, &place),
        3 | 4 => primitive(u, &place),
        _ => events(u, &place),
    }
}

/// Triplets to CSR, then to one other format: a sort takes seconds here.
fn conversions(u: &mut Unstructured<'_>, place: &Place) -> Result<()> {
    let (one, other, budget) = (size(u)?, size(u)?, budget(u)?);
    let Triplets(coo) = Triplets::<f64>::within(u, 20, 60)?;
    let expected = spm_formats::convert::coo_to_csr(&coo);
    let csr =
        DeviceCoo::from_coo(&place.device, &coo).and_then(|coo| convert::coo_to_csr(&coo, &budget));
    let Some(csr) = place.planned("coo-to-csr", csr) else { return Ok(()) };
    same(place, &csr, expected.view());
    let back = match u.int_in_range(0..=2_u8)? {
        0 => {
            let csc = place.planned("csr-to-csc", convert::csr_to_csc(&csr, &budget));
            let rows =
                csc.and_then(|csc| place.planned("csc-to-csr", convert::csc_to_csr(&csc, &budget)));
            rows.iter().for_each(|rows| same(place, rows, expected.view()));
            return Ok(());
        }
        1 => {
            let hll = place.planned("csr-to-hll", convert::csr_to_hll(&csr, one, &budget));
            let hll = hll.and_then(|hll| place.planned("to host", hll.to_host()));
            hll.map(|hll| spm_formats::convert::hll_to_csr(&hll))
        }
        _ => {
            let sell =
                place.planned("csr-to-sell", convert::csr_to_sell(&csr, one, other, &budget));
            let sell = sell.and_then(|sell| place.planned("to host", sell.to_host()));
            sell.map(|sell| spm_formats::convert::sell_to_csr(&sell))
        }
    };
    if let Some(back) = back {
        assert_eq!((back.row_ptr(), back.col_ind()), (expected.row_ptr(), expected.col_ind()));
        assert_eq!(computed_bits(back.values()), computed_bits(expected.values()));
    }
    Ok(())
}

fn same(place: &Place, found: &DeviceCompressed<f64>, expected: CsrView<'_, f64>) {
    assert_eq!((found.outer(), found.inner()), expected.shape());
    let mut host = TransposeOutput::<f64>::new(expected.rows(), expected.nnz());
    let copied = found
        .pointers()
        .copy_to_slice(&mut host.col_ptr)
        .and_then(|()| found.indices().copy_to_slice(&mut host.row_ind))
        .and_then(|()| found.values().copy_to_slice(&mut host.values));
    if place.works("copy", copied).is_some() {
        assert_eq!((&*host.col_ptr, &*host.row_ind), (expected.row_ptr(), expected.col_ind()));
        assert_eq!(computed_bits(&host.values), computed_bits(expected.values()));
    }
}

/// Padded matrices of changed arrays: what a constructor accepts, a product takes.
fn padded_matrix(u: &mut Unstructured<'_>, place: &Place) -> Result<()> {
    let (block, a) = (size(u)?, Matrix::<f32>::within(u, 20, 60)?);
    let device = &place.device;
    let (plan, csr) = if bool::arbitrary(u)? {
        let Some(hll) = padded::hll(u, a.csr.view())? else { return Ok(()) };
        let Some(on_device) = place.works("hll", DeviceHll::new(device, &hll)) else {
            return Ok(());
        };
        (on_device.into_spmv(block), spm_formats::convert::hll_to_csr(&hll))
    } else {
        let Some(sell) = padded::sell(u, a.csr.view())? else { return Ok(()) };
        let Some(on_device) = place.works("sell", DeviceSell::new(device, &sell)) else {
            return Ok(());
        };
        (on_device.into_spmv(block), spm_formats::convert::sell_to_csr(&sell))
    };
    let Some(mut plan) = place.planned("padded", plan) else { return Ok(()) };
    if csr.cols() > 1 << 16 {
        return Ok(());
    }
    let x: Vec<f32> = vector(u, csr.cols())?;
    let mut y = vec![0.0; csr.rows()];
    let mut run = || {
        let on_device = DeviceBuffer::from_slice(device, &x)?;
        let mut result = DeviceBuffer::uninitialized(device, y.len())?;
        plan.launch(&on_device, &mut result, &Stream::new(device)?)?;
        result.copy_to_slice(&mut y)
    };
    if place.works("product", run()).is_some() {
        let coo = spm_formats::convert::csr_to_coo(csr.view());
        compare("padded", &y, &reference::spmv(&coo, &x));
    }
    Ok(())
}

/// Padded formats made on the device, and products with them.
fn padded_plan(u: &mut Unstructured<'_>, place: &Place) -> Result<()> {
    let (hack, sigma, block) = (size(u)?, size(u)?, size(u)?);
    let (a, budget) = (Matrix::<f64>::within(u, 20, 60)?, budget(u)?);
    let csr = DeviceCompressed::from_csr(&place.device, a.csr.view());
    let Some(csr) = place.planned("copy", csr) else { return Ok(()) };
    let csr = csr.into_csr();
    let plan = if bool::arbitrary(u)? {
        DeviceHll::from_csr(&csr, hack, &budget).and_then(|hll| hll.into_spmv(block))
    } else {
        let chunk = if bool::arbitrary(u)? { DeviceSell::<f64>::CHUNK } else { hack };
        DeviceSell::from_csr(&csr, (chunk, sigma), &budget).and_then(|sell| sell.into_spmv(block))
    };
    drop(csr);
    let Some(mut plan) = place.planned("padded", plan) else { return Ok(()) };
    let x: Vec<f64> = vector(u, a.csr.cols())?;
    let mut y = vec![0.0; a.csr.rows()];
    let mut run = || {
        let stream = Stream::new(&place.device)?;
        let on_device = DeviceBuffer::from_slice(&place.device, &x)?;
        let mut result = DeviceBuffer::zeroed(&place.device, y.len())?;
        plan.launch(&on_device, &mut result, &stream)?;
        // Both go while the product may be deferred.
        drop((stream, on_device));
        result.copy_to_slice(&mut y)
    };
    if place.works("product", run()).is_some() {
        compare("padded", &y, &reference::spmv(&a.coo, &x));
    }
    Ok(())
}

fn primitive(u: &mut Unstructured<'_>, place: &Place) -> Result<()> {
    let all = primitives::registry();
    let (primitive, parameters) = choose(u, &all, |primitive| &primitive.info)?;
    let label = primitive.info.label(&parameters);
    // More elements than the kernels number, or as many as are sorted soon.
    let length = match size(u)? {
        length if length <= 70 => length * u.int_in_range(0..=9)?,
        length => length,
    };
    let prepared = primitive.prepare(&place.device, length, &parameters);
    if let Err(spm_formats::kernel::PlanError::Device(_)) = &prepared
        && length > 1 << 20
    {
        return Ok(());
    }
    let Some(mut prepared) = place.planned(&label, prepared) else { return Ok(()) };
    let streams =
        [Stream::new(&place.device), Stream::new(&place.device), Stream::new(&place.other)];
    let [Ok(one), Ok(two), Ok(foreign)] = streams else { return Ok(()) };
    for _ in 0..u.int_in_range(1..=4_u8)? {
        match u.int_in_range(0..=4_u8)? {
            0 => drop(place.works(&label, prepared.launch(&one))),
            1 => drop(place.works(&label, prepared.launch(&two))),
            2 => assert!(prepared.launch(&foreign).is_err() && prepared.check(&foreign).is_err()),
            3 => assert_ne!(place.works(&label, prepared.check(&one)), Some(false), "{label}"),
            _ => {
                let checked = std::thread::scope(|scope| {
                    scope.spawn(|| prepared.check(&two)).join().expect("no panic")
                });
                assert_ne!(place.works(&label, checked), Some(false), "{label}");
            }
        }
    }
    Ok(())
}

/// Events and times of devices, streams that wait, devices that are absent.
fn events(u: &mut Unstructured<'_>, place: &Place) -> Result<()> {
    let device = &place.device;
    let new = |device: &Device| (Event::new(device), Stream::new(device));
    let (Ok(event), Ok(stream)) = new(device) else { return Ok(()) };
    let (Ok(foreign), Ok(elsewhere)) = new(&place.other) else { return Ok(()) };
    let is_other = |result| matches!(result, Err(GpuError::OtherDevice { .. }));
    assert!(is_other(event.elapsed_since(&foreign).map(drop)));
    assert!(is_other(event.record(&elsewhere)));
    stream.wait(&foreign).expect("events of other emulated devices may be waited for");
    assert_eq!(event.elapsed_since(&event), Err(GpuError::NotRecorded));
    stream.wait(&event).expect("an event that was never recorded is not waited for");
    // Recorded and waited for by several threads at the same time.
    std::thread::scope(|scope| {
        for _ in 0..u.int_in_range(1..=3_u8).unwrap_or(1) {
            scope.spawn(|| {
                let stream = Stream::new(device).expect("an emulated device");
                for _ in 0..4 {
                    event.record(&stream).expect("of this device");
                    stream.wait(&event).expect("of this device");
                    drop(stream.synchronize());
                    drop(event.synchronize());
                }
            });
        }
    });
    drop((stream.synchronize(), event.elapsed_since(&event)));
    let sampling = Sampling {
        warm_up: u.int_in_range(0..=2)?,
        iterations: u.int_in_range(0..=3)?,
        min_time: Duration::ZERO,
        max_time: Duration::from_millis(size(u)? as u64),
    };
    let timed = time(&stream, &sampling, |_| Ok(()));
    assert!(timed.is_ok() || place.fragile, "{timed:?}");
    let mut left = u.int_in_range(0..=3_u8)?;
    let failing = time(&stream, &sampling, |_| match left.checked_sub(1) {
        Some(less) => {
            left = less;
            Ok(())
        }
        None => Err(GpuError::NoDevice),
    });
    assert!(matches!(failing, Err(GpuError::NoDevice)) || failing.is_ok());
    let (cols, entries) = (size(u)?, size(u)?);
    drop((
        DeviceCsc::<f64>::new(device, cols, entries),
        DeviceCsc::<f32>::pattern(device, cols, entries),
    ));
    assert!(cusparse::version(device).is_err());
    assert!(Device::open(u32::arbitrary(u)? | 1 << 31).is_err());
    assert!(device.is_emulated() && device.is(&device.clone()) && !device.is(&place.other));
    Ok(())
}
