//! Streams of the emulator: what orders their work, and what is reported where nothing does.

use std::collections::BTreeSet;
use std::sync::mpsc;

use spm_gpu_kernels::device::{DevicePtrMut, thread};
use spm_gpu_kernels::emulator::{
    Defect, EmuEvent, EmuStream, Emulator, EmulatorError, EmulatorOptions,
};
use spm_gpu_kernels::{Kernel, KernelArgs};

const SEEDS: std::ops::Range<u64> = 0..20;

/// `word = word * factor + summand`: any other order gives another number.
#[derive(Clone, Copy)]
struct Step {
    word: DevicePtrMut<u32>,
    factor: u32,
    summand: u32,
}

impl Kernel for Step {
    const NAME: &'static str = "step";
    type Args = Self;
    fn emulate(Self { word, factor, summand }: Self) {
        if thread::index_1d() == 0 {
            word.store(0_u32, word.load(0_u32) * factor + summand);
        }
    }
}

impl KernelArgs for Step {
    fn with_raw(&self, _: &mut dyn FnMut(&mut [*mut core::ffi::c_void])) {
        unreachable!("runs on the emulator only")
    }
}

fn device(seed: u64, detect_races: bool) -> Emulator {
    let deferred = true;
    Emulator::new(EmulatorOptions { seed, detect_races, deferred, ..Default::default() })
}

fn step(stream: &EmuStream, word: DevicePtrMut<u32>, factor: u32, summand: u32) {
    stream.launch::<Step>(1, 32, 0, Step { word, factor, summand }).unwrap();
}

#[test]
fn a_stream_is_in_order() {
    for seed in SEEDS {
        let emulator = device(seed, true);
        let (mine, other) = (emulator.alloc_from(&[1_u32]), emulator.alloc_from(&[1_u32]));
        let (first, second) = (emulator.stream(), emulator.stream());
        for digit in 2..6 {
            step(&first, mine.ptr_mut(), 10, digit);
            step(&second, other.ptr_mut(), 10, digit + 4);
        }
        emulator.synchronize().unwrap();
        assert_eq!((mine.to_vec(), other.to_vec()), (vec![12345], vec![16789]));
    }
}

#[test]
fn copies_zeroing_and_functions_take_their_turns() {
    for seed in SEEDS {
        let emulator = device(seed, true);
        let (from, to) = (emulator.alloc_from(&[4_u32]), emulator.alloc_uninit::<u32>(1));
        let stream = emulator.stream();
        let (send, receive) = mpsc::channel();
        stream.copy(&from, &to).unwrap();
        step(&stream, to.ptr_mut(), 10, 2);
        stream.call(move || send.send(()).unwrap());
        stream.zero(&from).unwrap();
        assert!(receive.try_recv().is_err(), "nothing is done before somebody waits");
        stream.synchronize().unwrap();
        assert!(receive.try_recv().is_ok());
        assert_eq!((from.to_vec(), to.to_vec()), (vec![0], vec![42]));
    }
}

/// The results of `word = 1` then `* 2` and `+ 1` in two streams.
fn results(order: impl Fn(&Emulator, &EmuStream, &EmuStream)) -> BTreeSet<u32> {
    let run = |seed| {
        let emulator = device(seed, false);
        let word = emulator.alloc_from(&[1_u32]);
        let (first, second) = (emulator.stream(), emulator.stream());
        step(&first, word.ptr_mut(), 2, 0);
        order(&emulator, &first, &second);
        step(&second, word.ptr_mut(), 1, 1);
        emulator.synchronize().unwrap();
        word.to_vec()[0]
    };
    SEEDS.map(run).collect()
}

#[test]
fn streams_run_in_any_order_that_events_allow() {
    assert_eq!(results(|_, _, _| ()), [3, 4].into());
    let by_event = results(|_, first, second| {
        let event = EmuEvent::default();
        second.wait(&event);
        event.record(first);
        second.wait(&event);
        // What was waited for is where the mark was then.
        event.record(first);
    });
    assert_eq!(by_event, [3].into());
    assert_eq!(results(|_, first, _| first.synchronize().unwrap()), [3].into());
    assert_eq!(results(|_, _, second| second.synchronize().unwrap()), [3, 4].into());
    let by_host = results(|emulator, first, _| {
        let event = EmuEvent::default();
        event.record(first);
        assert_eq!(event.passed(), None);
        event.synchronize(emulator).unwrap();
        assert!(event.passed().is_some());
    });
    assert_eq!(by_host, [3].into());
    assert_eq!(results(|emulator, _, _| drop(emulator.alloc_uninit::<u32>(1))), [3].into());
}

/// What the race detector says of the same with `second` doing what it likes to the word.
fn verdicts(
    deferred: bool,
    order: impl Fn(&Emulator, &EmuStream, &EmuStream),
) -> Vec<Result<(), EmulatorError>> {
    let run = |seed| {
        let emulator =
            Emulator::new(EmulatorOptions { seed, deferred, ..EmulatorOptions::default() });
        let word = emulator.alloc_from(&[1_u32]);
        let (first, second) = (emulator.stream(), emulator.stream());
        step(&first, word.ptr_mut(), 2, 0);
        order(&emulator, &first, &second);
        let args = Step { word: word.ptr_mut(), factor: 1, summand: 1 };
        second.launch::<Step>(1, 32, 0, args)?;
        emulator.synchronize()
    };
    SEEDS.map(run).collect()
}

#[test]
fn what_nothing_orders_is_reported_for_every_seed_deferred_or_not() {
    for deferred in [false, true] {
        for verdict in verdicts(deferred, |_, _, _| ()) {
            let Err(EmulatorError::Kernel { kernel: "step", defect, .. }) = verdict else {
                panic!("{verdict:?}")
            };
            assert!(matches!(defect, Defect::StreamRace { earlier: "step", .. }), "{defect}");
        }
        let through_a_third = |emulator: &Emulator, first: &EmuStream, second: &EmuStream| {
            let (third, events) = (emulator.stream(), [EmuEvent::default(), EmuEvent::default()]);
            events[0].record(first);
            third.wait(&events[0]);
            events[1].record(&third);
            second.wait(&events[1]);
        };
        assert!(verdicts(deferred, through_a_third).iter().all(Result::is_ok));
        assert!(
            verdicts(deferred, |_, first, _| first.synchronize().unwrap())
                .iter()
                .all(Result::is_ok)
        );
        assert!(
            verdicts(deferred, |emulator, _, _| emulator.synchronize().unwrap())
                .iter()
                .all(Result::is_ok)
        );
        let the_wrong_one = verdicts(deferred, |_, _, second| second.synchronize().unwrap());
        assert!(the_wrong_one.iter().all(Result::is_err));
    }
}

#[test]
fn zeroing_and_copies_race_too() {
    for deferred in [false, true] {
        let emulator = Emulator::new(EmulatorOptions { deferred, ..EmulatorOptions::default() });
        let (a, b) = (emulator.alloc_from(&[1_u32]), emulator.alloc_from(&[1_u32]));
        let (first, second) = (emulator.stream(), emulator.stream());
        let race = |run: &dyn Fn() -> Result<(), EmulatorError>| {
            let error = run().and_then(|()| emulator.synchronize()).unwrap_err();
            assert!(error.to_string().contains("races with"), "{error}");
            emulator.synchronize().unwrap();
        };
        race(&|| first.zero(&a).and_then(|()| second.zero(&a)));
        race(&|| first.copy(&a, &b).and_then(|()| second.zero(&a)));
        race(&|| first.zero(&a).and_then(|()| second.copy(&a, &b)));
        // Readers do not disturb each other.
        let c = emulator.alloc_from(&[1_u32]);
        first.copy(&a, &b).and_then(|()| second.copy(&a, &c)).unwrap();
        emulator.synchronize().unwrap();
    }
}

#[test]
fn a_deferred_failure_is_reported_once_by_who_waits() {
    let emulator = device(1, true);
    let word = emulator.alloc_from(&[1_u32]);
    let stream = emulator.stream();
    // SAFETY: the emulator checks the address.
    let nowhere = unsafe { DevicePtrMut::from_raw(8) };
    step(&stream, nowhere, 1, 0);
    step(&stream, word.ptr_mut(), 5, 0);
    let error = stream.synchronize().unwrap_err();
    assert!(matches!(error, EmulatorError::Kernel { kernel: "step", .. }), "{error}");
    assert_eq!((stream.synchronize(), emulator.synchronize()), (Ok(()), Ok(())));
    assert_eq!(word.to_vec(), [1], "nothing runs after a failure");
    let refused =
        stream.launch::<Step>(0, 1, 0, Step { word: word.ptr_mut(), factor: 1, summand: 1 });
    assert!(matches!(refused, Err(EmulatorError::InvalidLaunch { .. })), "{refused:?}");
}

#[test]
fn an_event_is_passed_when_a_failure_has_dropped_its_mark() {
    let emulator = device(1, true);
    let word = emulator.alloc_from(&[1_u32]);
    let (first, second, event) = (emulator.stream(), emulator.stream(), EmuEvent::default());
    // SAFETY: the emulator checks the address.
    let nowhere = unsafe { DevicePtrMut::from_raw(8) };
    step(&first, nowhere, 1, 0);
    event.record(&first);
    assert!(emulator.synchronize().is_err());
    second.wait(&event);
    step(&second, word.ptr_mut(), 5, 0);
    emulator.synchronize().unwrap();
    assert_eq!(word.to_vec(), [5]);
}

#[test]
fn threads_may_record_and_wait_for_one_event_at_the_same_time() {
    let (emulator, event) = (device(1, true), EmuEvent::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = emulator.stream();
                for _ in 0..500 {
                    event.record(&stream);
                    stream.wait(&event);
                    stream.synchronize().unwrap();
                }
            });
        }
    });
}

#[test]
fn a_buffer_is_freed_when_its_kernels_are_done_and_a_stream_may_go_first() {
    for seed in SEEDS {
        let emulator = device(seed, true);
        let kept = emulator.alloc_from(&[1_u32]);
        let stream = emulator.stream();
        let word = emulator.alloc_from(&[3_u32]);
        step(&stream, word.ptr_mut(), 2, 0);
        stream.copy(&word, &kept).unwrap();
        drop(stream);
        drop(word);
        assert_eq!(kept.to_vec(), [6], "seed {seed}");
        emulator.synchronize().unwrap();
    }
}
