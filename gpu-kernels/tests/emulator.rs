//! The emulator reports each kind of defect, where it is.

use spm_gpu_kernels::device::shared::Pool;
use spm_gpu_kernels::device::warp::{self, FULL_MASK};
use spm_gpu_kernels::device::{DevicePtr, DevicePtrMut, Real, thread};
use spm_gpu_kernels::emulator::{Defect, Emulator, EmulatorError, EmulatorOptions};
use spm_gpu_kernels::timing::Hold;
use spm_gpu_kernels::{Dim3, Kernel, KernelArgs};

/// A kernel without arguments but one output, written by hand so that it can do wrong.
macro_rules! test_kernel {
    ($name:ident, |$out:ident| $body:block) => {
        #[derive(Clone, Copy)]
        struct $name(DevicePtrMut<u32>);
        impl Kernel for $name {
            const NAME: &'static str = stringify!($name);
            type Args = Self;
            fn emulate(Self($out): Self) $body
        }
        impl KernelArgs for $name {
            fn with_raw(&self, f: &mut dyn FnMut(&mut [*mut core::ffi::c_void])) {
                let mut out = self.0;
                f(&mut [(&raw mut out).cast()]);
            }
        }
    };
}

/// Runs one block of 64 threads with 64 bytes of shared memory for several seeds; every seed must
/// find a defect, and the first is returned with the thread that has it.
macro_rules! defect_of {
    ($name:ident) => {{
        let found: Vec<(Dim3, Defect)> = (0..8)
            .map(|seed| {
                let options = EmulatorOptions { seed, step_limit: 10_000, ..Default::default() };
                let emulator = Emulator::new(options);
                let out = emulator.alloc_uninit::<u32>(64);
                match emulator.launch::<$name>(1, 64, 64, $name(out.ptr_mut())) {
                    Err(EmulatorError::Kernel { kernel, block, thread, defect }) => {
                        assert_eq!(kernel, stringify!($name));
                        assert_eq!(block, Dim3 { x: 0, y: 0 });
                        (thread, defect)
                    }
                    other => panic!("seed {seed}: {other:?}"),
                }
            })
            .collect();
        found.into_iter().next().expect("eight seeds")
    }};
}

#[test]
fn a_barrier_that_a_thread_does_not_reach() {
    test_kernel!(Early, |_out| {
        if thread::thread_idx_x() != 17 {
            thread::sync_threads();
        }
    });
    let (_, defect) = defect_of!(Early);
    let Defect::BarrierNotReached { missing, instead, at } = defect else { panic!("{defect}") };
    assert_eq!(missing, Dim3 { x: 17, y: 0 });
    assert_eq!(instead, "has ended");
    assert!(at.contains("emulator.rs"), "{at}");
}

#[test]
fn barriers_at_two_places() {
    test_kernel!(Split, |_out| {
        #[allow(clippy::if_same_then_else)]
        if thread::thread_idx_x() < 32 {
            thread::sync_threads();
        } else {
            thread::sync_threads();
        }
    });
    let (_, defect) = defect_of!(Split);
    assert!(matches!(defect, Defect::BarrierNotReached { .. }), "{defect}");
}

#[test]
fn a_shuffle_that_a_lane_does_not_reach() {
    test_kernel!(Waits, |_out| {
        if thread::thread_idx_x() == 40 {
            thread::sync_threads();
        } else {
            warp::shuffle_xor(FULL_MASK, 1_u32, 1, 32);
            thread::sync_threads();
        }
    });
    let (thread, defect) = defect_of!(Waits);
    let Defect::WarpOperationNotReached { missing, operation, instead, .. } = defect else {
        panic!("{defect}")
    };
    assert_eq!((missing, operation), (8, "shuffle_xor"));
    assert!(instead.starts_with("waits at the barrier"), "{instead}");
    assert!((32..64).contains(&thread.x));
}

#[test]
fn a_shuffle_from_a_lane_outside_of_the_mask() {
    test_kernel!(Inactive, |out| {
        let lane = thread::thread_idx_x();
        if lane < 4 {
            out.store(lane, warp::shuffle_down(0b1111, lane, 2, 32));
        }
    });
    let (thread, defect) = defect_of!(Inactive);
    let Defect::InactiveLane { source_lane, mask, .. } = defect else { panic!("{defect}") };
    assert_eq!((source_lane, mask), (thread.x + 2, 0b1111));
}

#[test]
fn a_caller_that_its_mask_does_not_name() {
    test_kernel!(Unnamed, |_out| {
        warp::sync_warp(0xffff);
    });
    let (thread, defect) = defect_of!(Unnamed);
    assert!(matches!(defect, Defect::NotInMask { lane, .. } if lane == thread.x % 32), "{defect}");
}

#[test]
fn a_store_beyond_the_end() {
    test_kernel!(Overrun, |out| {
        out.store(thread::thread_idx_x() + 1, 0);
    });
    let (thread, defect) = defect_of!(Overrun);
    assert_eq!(thread, Dim3 { x: 63, y: 0 });
    let Defect::OutOfBounds { access: "store", bytes: 4, why, .. } = defect else {
        panic!("{defect}")
    };
    assert_eq!(why, "starts at byte 256 of a buffer of 256 bytes");
}

#[test]
fn a_store_before_the_start_and_to_no_address() {
    test_kernel!(Before, |out| {
        out.offset(u64::MAX).store(0_u32, 0);
    });
    assert!(matches!(defect_of!(Before).1, Defect::OutOfBounds { .. }));
    test_kernel!(Null, |_out| {
        // SAFETY: the emulator checks the address.
        unsafe { DevicePtrMut::<u32>::from_raw(0) }.store(0_u32, 0);
    });
    assert!(matches!(defect_of!(Null).1, Defect::OutOfBounds { .. }));
}

#[test]
fn a_buffer_that_was_freed() {
    test_kernel!(Freed, |out| {
        out.store(0_u32, 0);
    });
    let emulator = Emulator::default();
    let stale = emulator.alloc_from(&[0_u32]).ptr_mut();
    let error = emulator.launch::<Freed>(1, 1, 0, Freed(stale)).unwrap_err().to_string();
    assert_eq!(emulator.allocated_bytes(), 0);
    assert!(error.ends_with("lies in a buffer that was freed"), "{error}");
}

#[test]
fn a_misaligned_vector() {
    test_kernel!(Misaligned, |out| {
        out.store_vector(1_u32, [0, 0]);
    });
    let (_, defect) = defect_of!(Misaligned);
    assert!(matches!(defect, Defect::Misaligned { alignment: 8, .. }), "{defect}");
}

/// Quads from one array, as pairs through shared memory, backwards to the other.
#[derive(Clone, Copy)]
struct Backwards<T>(DevicePtr<T>, DevicePtrMut<T>);

impl<T: Real> Kernel for Backwards<T> {
    const NAME: &'static str = "Backwards";
    type Args = Self;
    fn emulate(Self(from, to): Self) {
        let (me, last) = (thread::thread_idx_x(), thread::block_dim_x() - 1);
        let numbers = Pool::new().array::<T>(last + 1);
        if me % 4 == 0 {
            let [a, b, c, d] = T::load_quad(from, me.into());
            T::store_shared_pair(numbers, me, [a, b]);
            T::store_shared_pair(numbers, me + 2, [c, d]);
        }
        thread::sync_threads();
        to.store(last - me, numbers.load(me));
    }
}

impl<T: Real> KernelArgs for Backwards<T> {
    fn with_raw(&self, f: &mut dyn FnMut(&mut [*mut core::ffi::c_void])) {
        let mut args = *self;
        f(&mut [(&raw mut args.0).cast(), (&raw mut args.1).cast()]);
    }
}

#[test]
fn pairs_and_quads_of_any_real_type() {
    fn check<T: Real>(number: impl Fn(i8) -> T) {
        let emulator = Emulator::default();
        let from = emulator.alloc_from(&(0..64).map(&number).collect::<Vec<_>>());
        let to = emulator.alloc_uninit::<T>(64);
        let shared = 64 * size_of::<T>() as u32;
        let kernel = Backwards(from.ptr(), to.ptr_mut());
        emulator.launch::<Backwards<T>>(1, 64, shared, kernel).unwrap();
        assert_eq!(to.to_vec(), (0..64).rev().map(&number).collect::<Vec<_>>());
    }
    check(f32::from);
    check(f64::from);
}

#[test]
fn misaligned_pairs_in_shared_memory_and_beyond_its_end() {
    test_kernel!(OddPair, |_out| {
        f64::store_shared_pair(Pool::new().array(8), 3, [0.0; 2]);
    });
    let (_, defect) = defect_of!(OddPair);
    assert!(matches!(defect, Defect::Misaligned { alignment: 16, .. }), "{defect}");
    test_kernel!(LastPair, |_out| {
        f64::store_shared_pair(Pool::new().array(7), 6, [0.0; 2]);
    });
    let (_, defect) = defect_of!(LastPair);
    assert!(matches!(defect, Defect::SharedIndex { index: 7, length: 7 }), "{defect}");
}

#[test]
fn a_read_of_memory_that_nobody_wrote() {
    test_kernel!(Unwritten, |out| {
        let cells = Pool::new().array::<u32>(2);
        if thread::thread_idx_x() == 0 {
            cells.store(0, 7);
        }
        thread::sync_threads();
        out.store(0_u32, cells.load(0));
        cells.load(1);
    });
    let (_, defect) = defect_of!(Unwritten);
    assert!(matches!(defect, Defect::Uninitialized { address: 4, bytes: 4, .. }), "{defect}");
    test_kernel!(UnwrittenGlobal, |out| {
        out.store(0_u32, out.load(1_u32));
    });
    let (_, defect) = defect_of!(UnwrittenGlobal);
    assert!(matches!(defect, Defect::Uninitialized { .. }), "{defect}");
}

#[test]
fn indices_beyond_shared_memory() {
    test_kernel!(Index, |_out| {
        Pool::new().array::<u32>(8).store(8, 0);
    });
    assert_eq!(defect_of!(Index).1, Defect::SharedIndex { index: 8, length: 8 });
    test_kernel!(Size, |_out| {
        Pool::new().array::<u32>(64).store(16 + thread::thread_idx_x() % 2, 0);
    });
    let (_, defect) = defect_of!(Size);
    assert!(matches!(defect, Defect::SharedOutOfBounds { available: 64, .. }), "{defect}");
}

#[test]
fn a_race_without_a_barrier() {
    test_kernel!(Race, |out| {
        let cells = Pool::new().array::<u16>(32);
        let me = thread::thread_idx_x();
        if me < 32 {
            cells.store(me, me as u16);
            out.store(me, u32::from(cells.load(me)));
        }
        // Thread 33 reads what thread 5 wrote, without a barrier.
        if me == 33 {
            out.store(me, u32::from(cells.load(5)));
        }
    });
    // Which of the two comes first depends on the schedule: reading first finds nothing written.
    let (_, defect) = defect_of!(Race);
    assert!(matches!(defect, Defect::SharedRace { .. } | Defect::Uninitialized { .. }), "{defect}");

    test_kernel!(WriteAfterRead, |_out| {
        let cells = Pool::new().array::<u32>(1);
        let me = thread::thread_idx_x();
        if me == 0 {
            cells.store(0, 1);
        }
        thread::sync_threads();
        if me < 3 {
            cells.load(0);
        } else if me == 40 {
            cells.store(0, 2);
        }
    });
    let (_, defect) = defect_of!(WriteAfterRead);
    assert!(matches!(defect, Defect::SharedRace { offset: 0, .. }), "{defect}");

    // Two warps write one word.
    test_kernel!(WriteAfterWrite, |_out| {
        let cells = Pool::new().array::<u32>(1);
        let me = thread::thread_idx_x();
        if me.is_multiple_of(32) {
            cells.store(0, me);
        }
    });
    let (_, defect) = defect_of!(WriteAfterWrite);
    assert!(matches!(defect, Defect::SharedRace { offset: 0, .. }), "{defect}");

    // The writer's own warp has read twice since the reader that it races with.
    test_kernel!(WriteAfterReadElsewhere, |_out| {
        let cells = Pool::new().array::<u32>(1);
        let me = thread::thread_idx_x();
        if me == 0 {
            cells.store(0, 1);
        }
        thread::sync_threads();
        if !(2..62).contains(&me) {
            cells.load(0);
        }
        if me >= 32 {
            warp::sync_warp(FULL_MASK);
        }
        if me == 63 {
            cells.store(0, 2);
        }
    });
    let (_, defect) = defect_of!(WriteAfterReadElsewhere);
    assert!(matches!(defect, Defect::SharedRace { offset: 0, .. }), "{defect}");
}

#[test]
fn memory_that_is_not_read_only() {
    for seed in 0..8 {
        let emulator = Emulator::new(EmulatorOptions { seed, ..Default::default() });
        let out = emulator.alloc_from(&[0_u32; 64]);
        test_kernel!(Both, |out| {
            // SAFETY: the emulator checks every access.
            let same = unsafe { DevicePtr::<u32>::from_raw(out.as_raw()) };
            let me = thread::thread_idx_x();
            if me == 3 {
                out.store(40_u32, 1);
            } else if me == 50 {
                same.load(40_u32);
            }
        });
        let error = emulator.launch::<Both>(1, 64, 64, Both(out.ptr_mut())).unwrap_err();
        let EmulatorError::Kernel { defect, .. } = error else { panic!("{error}") };
        assert!(matches!(defect, Defect::NotReadOnly { bytes: 4, .. }), "{defect}");

        // Other elements of the array, and another launch, may write.
        test_kernel!(Apart, |out| {
            // SAFETY: the emulator checks every access.
            let same = unsafe { DevicePtr::<u32>::from_raw(out.as_raw()) };
            let me = thread::thread_idx_x();
            if me < 32 {
                out.store(me, same.load(me + 32));
            }
        });
        emulator.launch::<Apart>(1, 64, 64, Apart(out.ptr_mut())).unwrap();
        test_kernel!(Later, |out| {
            out.store(thread::thread_idx_x(), 1);
        });
        emulator.launch::<Later>(1, 64, 64, Later(out.ptr_mut())).unwrap();
    }
}

#[test]
fn no_race_where_the_warp_or_the_block_waits() {
    test_kernel!(Ordered, |out| {
        let me = thread::thread_idx_x();
        let cells = Pool::new().array::<u16>(32);
        if me < 32 {
            cells.store(me, me as u16);
            warp::sync_warp(FULL_MASK);
            out.store(me, u32::from(cells.load(31 - me)));
        }
        thread::sync_threads();
        if me >= 32 {
            cells.store(me - 32, 0);
        }
        thread::sync_threads();
        if me >= 32 {
            out.store(me, u32::from(cells.load(63 - me)));
        }
    });
    for seed in 0..20 {
        let emulator = Emulator::new(EmulatorOptions { seed, ..Default::default() });
        let out = emulator.alloc_uninit::<u32>(64);
        emulator.launch::<Ordered>(1, 64, 64, Ordered(out.ptr_mut())).unwrap();
        let expected: Vec<u32> = (0..32).rev().chain([0; 32]).collect();
        assert_eq!(out.to_vec(), expected);
    }
}

#[test]
fn a_loop_without_an_end() {
    test_kernel!(Forever, |out| {
        loop {
            out.store(0_u32, 0);
        }
    });
    assert_eq!(defect_of!(Forever).1, Defect::StepLimit { limit: 10_000 });
}

#[test]
fn a_panic() {
    test_kernel!(Panics, |_out| {
        assert!(thread::thread_idx_x() != 5, "thread five");
    });
    let (thread, defect) = defect_of!(Panics);
    assert_eq!((thread.x, defect), (5, Defect::Panic { message: "thread five".to_owned() }));
}

#[test]
fn launches_that_no_device_takes() {
    test_kernel!(Nothing, |_out| {});
    let emulator = Emulator::default();
    let nothing = Nothing(emulator.alloc_uninit(0).ptr_mut());
    for (grid, block, shared) in [(0, 32, 0), (1, 0, 0), (1, 1025, 0), (1, 32, 300 << 10)] {
        let error = emulator.launch::<Nothing>(grid, block, shared, nothing).unwrap_err();
        assert!(matches!(error, EmulatorError::InvalidLaunch { .. }), "{error}");
    }
    let small = Emulator::new(EmulatorOptions { memory: 100, ..Default::default() });
    let _held = small.try_alloc_uninit::<f64>(12).unwrap();
    assert_eq!(
        small.try_alloc_uninit::<u32>(2).unwrap_err(),
        EmulatorError::OutOfMemory { requested: 8, free: 4 }
    );
    // Nor does the host have it.
    let endless = Emulator::new(EmulatorOptions { memory: u64::MAX, ..Default::default() });
    for length in [usize::MAX, isize::MAX as usize, 1 << 40] {
        let error = endless.try_alloc_uninit::<u16>(length).unwrap_err();
        assert!(matches!(error, EmulatorError::OutOfMemory { .. }), "{error}");
    }
}

#[test]
fn shuffles_and_votes_mean_what_they_do_on_a_device() {
    test_kernel!(Meaning, |out| {
        let lane = warp::lane_id();
        let base = thread::thread_idx_x() / 32 * 12;
        let value = 100 + lane;
        let results = [
            warp::shuffle_down(FULL_MASK, value, 3, 8),
            warp::shuffle_up(FULL_MASK, value, 3, 8),
            warp::shuffle_xor(FULL_MASK, value, 5, 8),
            warp::shuffle_idx(FULL_MASK, value, 9, 8),
            warp::ballot(FULL_MASK, lane.is_multiple_of(3)),
            u32::from(warp::any(FULL_MASK, lane == 31)),
            u32::from(warp::all(FULL_MASK, lane == 31)),
            warp::match_any(FULL_MASK, lane / 30),
            f64::to_bits(warp::shuffle_xor(FULL_MASK, f64::from(lane), 16, 32)) as u32,
        ];
        if lane == 14 {
            for (i, result) in (0..).zip(results) {
                out.store(base + i, result);
            }
        }
    });
    let emulator = Emulator::default();
    let out = emulator.alloc_uninit::<u32>(64);
    emulator.launch::<Meaning>(1, 64, 0, Meaning(out.ptr_mut())).unwrap();
    // Lane 14 is lane 6 of the segment 8 to 15.
    let every_third = 0b01001001001001001001001001001001;
    let expected = [114, 111, 111, 109, every_third, 1, 0, 0x3fff_ffff, f64::to_bits(30.0) as u32];
    assert_eq!(out.to_vec()[..9], expected);
    assert_eq!(out.to_vec()[12..21], expected);
}

#[test]
fn the_order_of_threads_depends_on_the_seed_and_on_nothing_else() {
    test_kernel!(Order, |out| {
        let place = out.atomic_add(0_u32, 1);
        out.store(place + 1, thread::index_1d());
    });
    let run = |seed| {
        let emulator = Emulator::new(EmulatorOptions { seed, ..Default::default() });
        let out = emulator.alloc_from(&[0_u32; 65]);
        emulator.launch::<Order>(4, 16, 0, Order(out.ptr_mut())).unwrap();
        out.to_vec()
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
    let mut threads = run(3)[1..].to_vec();
    threads.sort_unstable();
    assert_eq!(threads, (0..64).collect::<Vec<_>>());
}

#[test]
fn a_stream_is_held_for_so_many_nanoseconds() {
    let emulator = Emulator::default();
    let gate = emulator.alloc_from(&[0u32]);
    let held = |nanoseconds, open| {
        let start = thread::global_timer();
        emulator.launch::<Hold>(1, 1, 0, Hold { nanoseconds, open }).unwrap();
        thread::global_timer().wrapping_sub(start)
    };
    assert!(held(50_000, gate.ptr()) >= 50_000);
    assert!(held(0, gate.ptr()) >= 1000);
    gate.write(&[1]);
    assert!((1000..50_000).contains(&held(50_000, gate.ptr())));
}
