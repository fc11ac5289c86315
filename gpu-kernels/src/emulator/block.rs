//! Execution of one block: its threads are coroutines, and a seeded scheduler picks the next one.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::ptr;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::heap::{Bytes, Heap, Path};
use super::rng::Rng;
use super::shared::{Moment, SharedError, SharedMemory, Use};
use super::stack::ShiftedStack;
use super::warp::{self, Call, LANES, Operation};
use super::{Defect, EmulatorError, EmulatorOptions};
use crate::Dim3;

thread_local! {
    /// The block that this host thread runs, or null.
    static CURRENT: Cell<*const Block<'static>> = const { Cell::new(ptr::null()) };
    /// Stacks that no coroutine uses.
    static STACKS: RefCell<Vec<ShiftedStack>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with the block that is running.
///
/// # Panics
/// Outside of a launch.
#[inline(always)]
pub(crate) fn with_current<R>(f: impl FnOnce(&Block<'_>) -> R) -> R {
    let block = CURRENT.get();
    assert!(!block.is_null(), "device functions work inside of a launch only");
    // SAFETY: `run_grid` sets the pointer to a block that it owns and clears it before the block
    // goes, and only this thread of the host reads it.
    f(unsafe { &*block })
}

pub(super) struct Launch<'a> {
    pub(super) kernel: &'static str,
    pub(super) grid: Dim3,
    pub(super) block: Dim3,
    pub(super) shared_bytes: u32,
    pub(super) options: EmulatorOptions,
    pub(super) body: &'a dyn Fn(),
}

#[derive(Debug, Clone, Copy)]
enum State {
    Runs,
    AtBarrier(&'static Location<'static>),
    InWarp(Call),
    Ended,
}

struct Thread {
    state: Cell<State>,
    /// The yielder of its coroutine, while that is alive.
    yielder: Cell<*const Yielder<(), ()>>,
    /// The result of the latest warp operation.
    result: Cell<u64>,
    steps: Cell<u64>,
}

/// Lanes are bits of the masks.
#[derive(Default)]
struct Warp {
    /// Number of completed warp barriers.
    epoch: Cell<u32>,
    /// The lanes that wait in a warp operation.
    waiting: Cell<u32>,
    /// The lanes that have ended, and those that a block of this size does not have.
    ended: Cell<u32>,
}

impl Warp {
    /// Whether all lanes of `mask` that can arrive wait in some operation.
    fn has_arrived(&self, mask: u32) -> bool {
        mask & !self.ended.get() & !self.waiting.get() == 0
    }
}

/// The state of the running block.
pub(crate) struct Block<'a> {
    launch: &'a Launch<'a>,
    heap: RefCell<&'a mut Heap>,
    shared: RefCell<SharedMemory>,
    index: Cell<Dim3>,
    threads: Vec<Thread>,
    current: Cell<u32>,
    ready: RefCell<Vec<u32>>,
    ended: Cell<u32>,
    at_barrier: Cell<u32>,
    block_epoch: Cell<u32>,
    warps: Vec<Warp>,
    defect: RefCell<Option<(u32, Defect)>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Axis {
    X,
    Y,
}

impl Axis {
    fn of(self, extent: Dim3) -> u32 {
        match self {
            Self::X => extent.x,
            Self::Y => extent.y,
        }
    }
}

/// Runs all blocks, in an order drawn from `rng`.
pub(super) fn run_grid(
    launch: &Launch<'_>,
    heap: &mut Heap,
    rng: &mut Rng,
) -> Result<(), EmulatorError> {
    let threads = launch.block.count() as usize;
    let block = Block {
        launch,
        heap: RefCell::new(heap),
        shared: RefCell::new(SharedMemory::new(launch.shared_bytes, launch.options.detect_races)),
        index: Cell::new(Dim3 { x: 0, y: 0 }),
        threads: (0..threads).map(|_| Thread::new()).collect(),
        current: Cell::new(0),
        ready: RefCell::new(Vec::with_capacity(threads)),
        ended: Cell::new(0),
        at_barrier: Cell::new(0),
        block_epoch: Cell::new(0),
        warps: (0..threads.div_ceil(LANES as usize)).map(|_| Warp::default()).collect(),
        defect: RefCell::new(None),
    };
    // Cleared on every way out, so that a dangling block is never seen.
    struct Clear(*const Block<'static>);
    impl Drop for Clear {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _clear = Clear(CURRENT.replace(ptr::from_ref(&block).cast()));
    let all = launch.grid.count();
    let blocks = launch.options.last_blocks.map_or(all, |last| last.clamp(1, all));
    let (first, stride) = (rng.below(blocks as usize) as u64, coprime_stride(blocks, rng));
    for i in 0..blocks {
        let position =
            ((u128::from(first) + u128::from(i) * u128::from(stride)) % u128::from(blocks)) as u64;
        let position = all - blocks + position;
        let x = u64::from(launch.grid.x);
        block.index.set(Dim3 { x: (position % x) as u32, y: (position / x) as u32 });
        block.run(rng).map_err(|(thread, defect)| EmulatorError::Kernel {
            kernel: launch.kernel,
            block: block.index.get(),
            thread: block.coordinates(thread),
            defect,
        })?;
    }
    Ok(())
}

/// A number without a common divisor with `n`: its multiples modulo `n` are a permutation.
fn coprime_stride(n: u64, rng: &mut Rng) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut stride = 1 + rng.below(n as usize) as u64;
    while gcd(stride, n) != 1 {
        stride += 1;
    }
    stride
}

impl Thread {
    fn new() -> Self {
        Self {
            state: Cell::new(State::Runs),
            yielder: Cell::new(ptr::null()),
            result: Cell::new(0),
            steps: Cell::new(0),
        }
    }
}

impl Block<'_> {
    /// Runs the block to its end, or to the first defect and the thread that has it.
    fn run(&self, rng: &mut Rng) -> Result<(), (u32, Defect)> {
        self.shared.borrow_mut().reset();
        self.ended.set(0);
        self.at_barrier.set(0);
        let count = self.threads.len() as u32;
        for (warp, first) in self.warps.iter().zip((0..).step_by(LANES as usize)) {
            let lanes = (count - first).min(LANES);
            warp.waiting.set(0);
            warp.ended.set(u32::MAX.checked_shl(lanes).unwrap_or(0));
        }
        self.ready.borrow_mut().extend(0..count);
        let mut coroutines: Vec<_> =
            (0..count).map(|thread| Some(self.coroutine(thread))).collect();
        while self.ended.get() < count {
            let next = {
                let mut ready = self.ready.borrow_mut();
                if ready.is_empty() {
                    return Err(self.deadlock());
                }
                let position = rng.below(ready.len());
                ready.swap_remove(position)
            };
            self.current.set(next);
            let slot = &mut coroutines[next as usize];
            let Some(coroutine) = slot else { continue };
            let ended = match catch_unwind(AssertUnwindSafe(|| coroutine.resume(()))) {
                Ok(CoroutineResult::Yield(())) => false,
                Ok(CoroutineResult::Return(())) => true,
                Err(payload) => {
                    return Err((next, Defect::Panic { message: panic_message(payload.as_ref()) }));
                }
            };
            if let Some(found) = self.defect.take() {
                return Err(found);
            }
            if ended {
                if let Some(coroutine) = slot.take() {
                    STACKS.with_borrow_mut(|stacks| stacks.push(coroutine.into_stack()));
                }
                self.threads[next as usize].state.set(State::Ended);
                self.ended.set(self.ended.get() + 1);
                // The others of its warp do not wait for it any more.
                self.meet_after_end(next)?;
            }
        }
        Ok(())
    }

    fn coroutine(&self, index: u32) -> Coroutine<(), (), (), ShiftedStack> {
        let thread = &self.threads[index as usize];
        thread.state.set(State::Runs);
        thread.steps.set(0);
        let stack = STACKS.with_borrow_mut(Vec::pop).unwrap_or_else(|| {
            ShiftedStack::new(index as usize).expect("the host has memory for a stack")
        });
        let run = |yielder: &Yielder<(), ()>, ()| {
            thread.yielder.set(yielder);
            (self.launch.body)();
        };
        // SAFETY: the closure borrows this block, which outlives the coroutine: `run` owns and
        // drops all of its coroutines.
        unsafe { Coroutine::with_stack_unchecked(stack, run) }
    }

    fn coordinates(&self, thread: u32) -> Dim3 {
        Dim3 { x: thread % self.launch.block.x, y: thread / self.launch.block.x }
    }

    pub(crate) fn thread_idx(&self, axis: Axis) -> u32 {
        axis.of(self.coordinates(self.current.get()))
    }

    pub(crate) fn block_idx(&self, axis: Axis) -> u32 {
        axis.of(self.index.get())
    }

    pub(crate) fn block_dim(&self, axis: Axis) -> u32 {
        axis.of(self.launch.block)
    }

    pub(crate) fn grid_dim(&self, axis: Axis) -> u32 {
        axis.of(self.launch.grid)
    }

    pub(crate) fn lane_id(&self) -> u32 {
        self.current.get() % LANES
    }

    /// Yields to another thread; returns when this one is scheduled again. Every return of a function that has been
    /// left here is mispredicted: there should be few.
    #[inline(always)]
    fn suspend(&self) {
        let yielder = self.threads[self.current.get() as usize].yielder.get();
        // SAFETY: set at the start of the coroutine that calls this, and valid until it ends.
        unsafe { (*yielder).suspend(()) }
    }

    /// Records a defect of the current thread, which does not continue.
    pub(crate) fn fail(&self, defect: Defect) -> ! {
        self.defect.replace(Some((self.current.get(), defect)));
        loop {
            self.suspend();
        }
    }

    #[inline(always)]
    fn step(&self) {
        let steps = &self.threads[self.current.get() as usize].steps;
        steps.set(steps.get() + 1);
        let limit = self.launch.options.step_limit;
        if steps.get() > limit {
            self.fail(Defect::StepLimit { limit });
        }
    }

    #[inline(always)]
    pub(crate) fn sync_threads(&self, at: &'static Location<'static>) {
        self.arrive_at_barrier(at);
        self.suspend();
    }

    #[inline(never)]
    fn arrive_at_barrier(&self, at: &'static Location<'static>) {
        self.step();
        let current = self.current.get();
        self.threads[current as usize].state.set(State::AtBarrier(at));
        self.at_barrier.set(self.at_barrier.get() + 1);
        if self.at_barrier.get() as usize == self.threads.len() {
            for thread in &self.threads {
                if !matches!(thread.state.get(), State::AtBarrier(place) if warp::is_same_place(place, at))
                {
                    self.fail(self.barrier_defect(current, at));
                }
            }
            self.at_barrier.set(0);
            self.block_epoch.set(self.block_epoch.get() + 1);
            let mut ready = self.ready.borrow_mut();
            for (index, thread) in (0..).zip(&self.threads) {
                thread.state.set(State::Runs);
                ready.push(index);
            }
        }
    }

    /// Waits for the other lanes of the mask in `call`; returns this lane's result.
    #[inline(always)]
    pub(crate) fn warp_operation(&self, call: &Call) -> u64 {
        self.arrive(call);
        self.suspend();
        self.threads[self.current.get() as usize].result.get()
    }

    /// Makes the current lane wait in `call`, which the last one to arrive completes.
    #[inline(never)]
    fn arrive(&self, call: &Call) {
        let Call { operation, mask, at, .. } = *call;
        self.step();
        let current = self.current.get();
        let lane = current % LANES;
        if mask >> lane & 1 == 0 {
            let (operation, at) = (operation.name(), at.to_string());
            self.fail(Defect::NotInMask { operation, at, lane, mask });
        }
        self.threads[current as usize].state.set(State::InWarp(*call));
        let warp = &self.warps[(current / LANES) as usize];
        warp.waiting.set(warp.waiting.get() | 1 << lane);
        if warp.has_arrived(mask)
            && let Err(found) = self.meet(current - lane, call)
        {
            self.defect.replace(Some(found));
        }
    }

    /// Completes the operation of `call` in the warp that starts at thread `first`, in which its lanes
    /// have arrived, if they wait in the same operation. Lanes that ended, or that a block of this size
    /// does not have, are not required.
    fn meet(&self, first: u32, call: &Call) -> Result<(), (u32, Defect)> {
        let warp = &self.warps[(first / LANES) as usize];
        let lanes = call.mask & !warp.ended.get();
        let mut calls = [None; LANES as usize];
        for lane in ones(lanes) {
            match self.threads[(first + lane) as usize].state.get() {
                State::InWarp(other) if other.meets(call) => calls[lane as usize] = Some(other),
                _ => return Ok(()),
            }
        }
        if call.operation == Operation::Sync {
            warp.epoch.set(warp.epoch.get() + 1);
        }
        warp.waiting.set(warp.waiting.get() & !lanes);
        let vote = warp::vote(&calls, call.operation);
        let mut ready = self.ready.borrow_mut();
        for lane in ones(lanes) {
            let index = first + lane;
            let result = match vote {
                Some(result) => result,
                None => warp::result(&calls, lane).map_err(|defect| (index, defect))?,
            };
            let thread = &self.threads[index as usize];
            thread.result.set(result);
            thread.state.set(State::Runs);
            ready.push(index);
        }
        Ok(())
    }

    /// Completes the operations in which the others of its warp have waited for this thread alone.
    fn meet_after_end(&self, ended: u32) -> Result<(), (u32, Defect)> {
        let (lane, warp) = (ended % LANES, &self.warps[(ended / LANES) as usize]);
        warp.ended.set(warp.ended.get() | 1 << lane);
        let first = ended - lane;
        for other in ones(warp.waiting.get()) {
            if let State::InWarp(call) = self.threads[(first + other) as usize].state.get()
                && call.mask >> lane & 1 == 1
                && warp.has_arrived(call.mask)
            {
                self.meet(first, &call)?;
            }
        }
        Ok(())
    }

    /// Why no thread can continue.
    fn deadlock(&self) -> (u32, Defect) {
        for (index, thread) in (0..).zip(&self.threads) {
            let State::InWarp(call) = thread.state.get() else { continue };
            let first = index - index % LANES;
            let missing = (0..LANES).filter(|lane| call.mask >> lane & 1 == 1).find(|lane| {
                match self.threads.get((first + lane) as usize).map(|t| t.state.get()) {
                    Some(State::InWarp(other)) => !other.meets(&call),
                    Some(State::AtBarrier(_) | State::Runs) => true,
                    Some(State::Ended) | None => false,
                }
            });
            if let Some(missing) = missing {
                let defect = Defect::WarpOperationNotReached {
                    operation: call.operation.name(),
                    at: call.at.to_string(),
                    mask: call.mask,
                    missing,
                    instead: self.whereabouts(first + missing),
                };
                return (index, defect);
            }
        }
        for (index, thread) in (0..).zip(&self.threads) {
            if let State::AtBarrier(at) = thread.state.get() {
                return (index, self.barrier_defect(index, at));
            }
        }
        unreachable!("a block without a runnable thread has one that waits")
    }

    fn barrier_defect(&self, waiting: u32, at: &'static Location<'static>) -> Defect {
        let missing = (0..)
            .zip(&self.threads)
            .find(|(_, t)| !matches!(t.state.get(), State::AtBarrier(place) if warp::is_same_place(place, at)))
            .map_or(waiting, |(index, _)| index);
        Defect::BarrierNotReached {
            at: at.to_string(),
            missing: self.coordinates(missing),
            instead: self.whereabouts(missing),
        }
    }

    fn whereabouts(&self, thread: u32) -> String {
        match self.threads[thread as usize].state.get() {
            State::Runs => "runs".to_owned(),
            State::AtBarrier(at) => format!("waits at the barrier of {at}"),
            State::InWarp(call) => {
                format!(
                    "waits at {} of {} with mask {:#010x}",
                    call.operation.name(),
                    call.at,
                    call.mask
                )
            }
            State::Ended => "has ended".to_owned(),
        }
    }

    #[inline(always)]
    pub(crate) fn load_global<const N: usize>(
        &self,
        path: Path,
        access: &'static str,
        address: u64,
        alignment: u32,
    ) -> Bytes<N> {
        self.step();
        let loaded = self.heap.borrow_mut().load(path, access, address, alignment);
        loaded.unwrap_or_else(|defect| self.fail(defect))
    }

    #[inline(always)]
    pub(crate) fn store_global<const N: usize>(
        &self,
        access: &'static str,
        address: u64,
        alignment: u32,
        value: Bytes<N>,
    ) {
        self.step();
        let stored = self.heap.borrow_mut().store(access, address, alignment, value);
        stored.unwrap_or_else(|defect| self.fail(defect));
    }

    fn now(&self) -> Moment {
        let thread = self.current.get();
        Moment {
            thread,
            block_epoch: self.block_epoch.get(),
            warp_epoch: self.warps[(thread / LANES) as usize].epoch.get(),
        }
    }

    fn fail_shared(&self, error: SharedError) -> ! {
        self.fail(match error {
            SharedError::Defect(defect) => defect,
            SharedError::Race(access, race) => Defect::SharedRace {
                access,
                offset: race.offset,
                earlier: race.earlier,
                other: self.coordinates(race.other),
            },
        })
    }

    pub(crate) fn load_shared<const N: usize>(&self, offset: u32, alignment: u32) -> Bytes<N> {
        self.step();
        let loaded = self.shared.borrow_mut().load(Use::Load, offset, alignment, self.now());
        loaded.unwrap_or_else(|error| self.fail_shared(error))
    }

    pub(crate) fn store_shared<const N: usize>(
        &self,
        offset: u32,
        alignment: u32,
        value: Bytes<N>,
    ) {
        self.step();
        let stored =
            self.shared.borrow_mut().store(Use::Store, offset, alignment, value, self.now());
        stored.unwrap_or_else(|error| self.fail_shared(error));
    }

    /// Replaces a value in shared memory by `f` of it; returns what it was.
    pub(crate) fn update_shared<const N: usize>(
        &self,
        offset: u32,
        f: impl FnOnce(Bytes<N>) -> Bytes<N>,
    ) -> Bytes<N> {
        self.step();
        let updated = {
            let mut shared = self.shared.borrow_mut();
            let now = self.now();
            shared.load(Use::Atomic, offset, N as u32, now).and_then(|old| {
                shared.store(Use::Atomic, offset, N as u32, f(old), now).map(|()| old)
            })
        };
        updated.unwrap_or_else(|error| self.fail_shared(error))
    }
}

/// The positions of the ones of a word, ascending.
fn ones(mut word: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(lowest)
    })
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|&text| text.to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}
