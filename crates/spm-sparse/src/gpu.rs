//! The products of an operator on a GPU: the only file that knows the registries of `spm-gpu`.

use std::error::Error as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use spm_formats::kernel::{Footprint, PlanError, Scaling, split_label};
use spm_formats::{Csr, DenseShape, MemoryBudget, Replacement, Scalar};
use spm_gpu::spmv::BoxedPlan;
use spm_gpu::{
    DeviceBuffer, DeviceCsr, DeviceScalar, DeviceVector, PlanOptions, Sampling, Stream, spmm, spmv,
};

use crate::device::Gpu;
use crate::many::Many;
use crate::operator::Intent;
use crate::{Description, Error, ParseRecipeError, Reason, Recipe};

/// The product straight from CSR, for rows of about the same length and of any length.
const DIRECT: &str = "csr-subwarp-per-row";
const DIRECT_SKEWED: &str = "csr-segmented-sum";
/// Y = A X straight from CSR, of a real and of a complex matrix.
const DIRECT_MANY: &str = "csr-vector";
const DIRECT_MANY_COMPLEX: &str = "csr-row-split";
/// The fastest kernel.
const FASTEST: &str = "auto";
/// Fewer products do not pay for more planning than that of [`DIRECT`].
const FEW: u64 = 20;
/// A longest row of so many means, which are taken as at least 4, asks for [`DIRECT_SKEWED`].
const SKEWED: f64 = 8.0;
/// Workspaces that are kept for later products.
const MOST_FREE: usize = 8;

/// Which form of A a product is with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// With A^T.
    pub transposed: bool,
    /// With conjugate values.
    pub conjugate: bool,
}

impl Form {
    /// A itself.
    pub const PLAIN: Self = Self { transposed: false, conjugate: false };
}

/// What a caller of the builder has said.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) recipe: Option<Recipe>,
    pub(crate) intent: Intent,
    pub(crate) budget: MemoryBudget,
    /// Whether values are expected to change.
    pub(crate) new_values: bool,
}

impl Options {
    /// Whether other operators with these options must give the same bits.
    fn is_reproducible(&self) -> bool {
        self.recipe.is_some() || self.intent.deterministic
    }

    fn plan_options(&self) -> PlanOptions {
        PlanOptions { budget: self.budget.clone(), new_values: self.new_values }
    }
}

/// [`plan`] for one element type.
pub(crate) type Planner<T> = fn(Gpu, &Csr<T>, Options) -> Result<Box<dyn GpuProducts<T>>, Error>;

/// [`Plans`], without the bound that they have on the element type. All operands have the right lengths.
pub(crate) trait GpuProducts<T>: Send + Sync {
    fn gpu(&self) -> &Gpu;

    fn recipe(&self) -> &Recipe;

    /// `plain`, and what else there is to say.
    fn describe(&self, plain: Description) -> Description;

    /// Bytes of device memory of the plans and of free workspaces.
    fn memory_bytes(&self) -> u64;

    /// See [`Operator::measure`](crate::Operator::measure).
    fn measure(&self, a: &Csr<T>) -> Option<Duration>;

    /// `y` = alpha A `x` + beta `z` for this form of A; z is y unless there is another.
    fn on_host(
        &self,
        a: &Csr<T>,
        form: Form,
        scaling: (T, T),
        x: &[T],
        z: Option<&[T]>,
        y: &mut [T],
    ) -> Result<(), Error>;

    /// The same with vectors in device memory.
    fn on_device(
        &self,
        a: &Csr<T>,
        form: Form,
        scaling: (T, T),
        x: &DeviceVector<T>,
        z: Option<&DeviceVector<T>>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), Error>;

    /// The same in a stream; z is y.
    fn in_stream(
        &self,
        a: &Csr<T>,
        form: Form,
        scaling: (T, T),
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), Error>;

    /// `Y` = alpha A `X` + beta `Y` in a stream.
    fn many_in_stream(
        &self,
        a: &Csr<T>,
        dense: DenseShape,
        scaling: (T, T),
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), Error>;

    /// The same with dense matrices in device memory, in the order of their streams.
    fn many_on_device(
        &self,
        a: &Csr<T>,
        dense: DenseShape,
        scaling: (T, T),
        x: &DeviceVector<T>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), Error>;

    /// `Y` = alpha A `X` + beta `Y`.
    fn many_on_host(
        &self,
        a: &Csr<T>,
        dense: DenseShape,
        scaling: (T, T),
        x: &[T],
        y: &mut [T],
    ) -> Result<(), Error>;

    /// Writes `values` into `a` and into the plan. Returns whether the plan takes them; if not, nothing
    /// has changed.
    fn set_values(&mut self, a: &mut Arc<Csr<T>>, values: Replacement<'_, T>) -> bool;

    /// The same choice for other values; straight from CSR if its kernel does not suit them.
    fn again(&self, a: &Csr<T>) -> Result<Box<dyn GpuProducts<T>>, Error>;
}

/// Why an operator is not on a GPU, in one line.
pub(crate) fn reason(error: &Error) -> String {
    match error.source() {
        Some(cause) => cause.to_string(),
        None => error.to_string(),
    }
}

/// Plans the products with `a` on a GPU.
pub(crate) fn plan<T: DeviceScalar>(
    gpu: Gpu,
    a: &Csr<T>,
    options: Options,
) -> Result<Box<dyn GpuProducts<T>>, Error> {
    let start = Instant::now();
    let Intent { products, deterministic } = options.intent;
    let few = products.filter(|&expected| expected < FEW);
    let (label, reason) = match (&options.recipe, few) {
        (Some(recipe), _) if recipe.is_gpu() => (recipe.kernel(), Reason::Recipe),
        (Some(_), _) => {
            let reason = "the recipe is for CPU cores".to_owned();
            return Err(Error::Recipe(ParseRecipeError::new(reason)));
        }
        (None, Some(expected)) => (by_row_lengths(a), Reason::Few { expected, pays_from: None }),
        (None, None) if deterministic => (by_row_lengths(a), Reason::RowLengths),
        (None, None) => (FASTEST, Reason::FastestOnGpu),
    };
    let product = Plan::of_vectors(&gpu, a, Form::PLAIN, label, &options)?;
    Ok(Box::new(Plans::new(gpu, options, product, reason, start.elapsed())))
}

/// The kernel straight from CSR for the row lengths of `a`.
fn by_row_lengths<T: Scalar>(a: &Csr<T>) -> &'static str {
    let longest = a.row_ptr().windows(2).map(|row| row[1] - row[0]).max().unwrap_or(0);
    let mean = a.nnz() as f64 / a.rows().max(1) as f64;
    if f64::from(longest) > SKEWED * mean.max(4.0) { DIRECT_SKEWED } else { DIRECT }
}

/// A plan, and what is known of it.
struct Plan<T> {
    /// Locked while a product is put into its stream, not while it runs.
    plan: Mutex<BoxedPlan<T>>,
    recipe: Recipe,
    footprint: Footprint,
}

impl<T: DeviceScalar> Plan<T> {
    fn new(plan: BoxedPlan<T>, label: String) -> Result<Self, Error> {
        // Copies and conversions of planning may still run, and the first product may be in any stream.
        plan.device().synchronize()?;
        let footprint = plan.footprint();
        let recipe = Recipe::gpu(plan.choice().unwrap_or(label));
        Ok(Self { plan: Mutex::new(plan), recipe, footprint })
    }

    /// The product with one form of `a`, by the kernel of a label.
    fn of_vectors(
        gpu: &Gpu,
        a: &Csr<T>,
        form: Form,
        label: &str,
        options: &Options,
    ) -> Result<Self, Error> {
        let wrong = |reason| Error::Recipe(ParseRecipeError::new(reason));
        let no_kernel = |id: &str| {
            let is_for_real = T::IS_COMPLEX && spmv::find::<f64>(id).is_some();
            wrong(match is_for_real {
                true => {
                    format!("the kernel {id:?} for a GPU is for f32 and f64, not for {}", T::NAME)
                }
                false => format!("there is no kernel {id:?} for a GPU"),
            })
        };
        let (id, text) = split_label(label);
        let kernel = spmv::find::<T>(id).ok_or_else(|| no_kernel(id))?;
        let parameters =
            kernel.info.parse_parameters(text).map_err(|error| wrong(error.to_string()))?;
        let label = kernel.info.label(&parameters);
        let conjugated = form.conjugate.then(|| conjugated(a));
        let a = conjugated.as_ref().unwrap_or(a).view();
        let (device, plan_options) = (&gpu.device, &options.plan_options());
        let plan = if form.transposed {
            let transpose = Arc::new(DeviceCsr::transposed(device, a, plan_options)?);
            let plan = kernel.plan_on_device(&transpose, &parameters, plan_options);
            plan.ok_or_else(|| no_kernel(id))??
        } else {
            kernel.plan(device, a, &parameters, plan_options)?
        };
        Self::new(plan, label)
    }

    /// Y = A X.
    fn of_dense(
        gpu: &Gpu,
        a: &Csr<T>,
        dense: DenseShape,
        options: &Options,
    ) -> Result<Self, Error> {
        let id = match options.is_reproducible() {
            true if T::IS_COMPLEX => DIRECT_MANY_COMPLEX,
            true => DIRECT_MANY,
            false => FASTEST,
        };
        let kernel = spmm::find::<T>(id).expect("a registered kernel");
        let parameters = kernel.info.defaults();
        let plan =
            kernel.plan(&gpu.device, a.view(), dense, &parameters, &options.plan_options())?;
        Self::new(plan, kernel.info.label(&parameters))
    }

    fn get_mut(&mut self) -> &mut BoxedPlan<T> {
        self.plan.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BoxedPlan<T>> {
        // A plan is whole after a panic: it only puts launches into streams.
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The matrix with conjugate values.
fn conjugated<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let mut a = a.clone();
    a.values_mut().iter_mut().for_each(|value| *value = value.conj());
    a
}

/// The plans of an operator on a GPU, and what further ones are made by.
struct Plans<T> {
    gpu: Gpu,
    options: Options,
    /// With A.
    product: Plan<T>,
    reason: Reason,
    planning: Duration,
    measured: Mutex<Option<Duration>>,
    /// With conj(A), A^T and A^H, made at the first product. A real matrix has the second only.
    others: [OnceLock<Plan<T>>; 3],
    /// Held by the thread that makes one of `others`.
    making: Mutex<()>,
    transposed_products: AtomicU64,
    /// Y = A X, one for each width and layout that has been asked for.
    many: Many<Plan<T>>,
    free: Mutex<Vec<Workspace<T>>>,
}

/// What a product with vectors in host memory takes: their copies, and a stream of its own.
struct Workspace<T> {
    x: DeviceBuffer<T>,
    y: DeviceBuffer<T>,
    stream: Stream,
}

impl<T: DeviceScalar> Plans<T> {
    fn new(
        gpu: Gpu,
        options: Options,
        product: Plan<T>,
        reason: Reason,
        planning: Duration,
    ) -> Self {
        Self {
            gpu,
            options,
            product,
            reason,
            planning,
            measured: Mutex::default(),
            others: Default::default(),
            making: Mutex::default(),
            transposed_products: AtomicU64::new(0),
            many: Many::new(),
            free: Mutex::default(),
        }
    }

    /// The plan for a form of A.
    fn form(&self, a: &Csr<T>, form: Form) -> Result<&Plan<T>, Error> {
        if form.transposed {
            self.transposed_products.fetch_add(1, Ordering::Relaxed);
        }
        let form = Form { conjugate: form.conjugate && T::IS_COMPLEX, ..form };
        let place = match form {
            Form::PLAIN => return Ok(&self.product),
            Form { transposed: false, .. } => &self.others[0],
            Form { conjugate: false, .. } => &self.others[1],
            Form { .. } => &self.others[2],
        };
        if let Some(plan) = place.get() {
            return Ok(plan);
        }
        let _guard = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = place.get() {
            return Ok(plan);
        }
        let label = match form.transposed {
            // It has the structure of A.
            false => self.recipe().kernel(),
            true if self.options.is_reproducible() => DIRECT_SKEWED,
            true => FASTEST,
        };
        let made = Plan::of_vectors(&self.gpu, a, form, label, &self.options);
        let made = match made {
            Err(Error::Plan(_)) => Plan::of_vectors(&self.gpu, a, form, DIRECT, &self.options)?,
            made => made?,
        };
        Ok(place.get_or_init(|| made))
    }

    fn dense(&self, a: &Csr<T>, dense: DenseShape) -> Result<Arc<Plan<T>>, Error> {
        self.many.plan(dense, || Plan::of_dense(&self.gpu, a, dense, &self.options))
    }

    /// The product with operands in host memory, through a workspace that no other thread uses.
    fn run(
        &self,
        plan: &Plan<T>,
        scaling: Scaling<T>,
        x: &[T],
        z: Option<&[T]>,
        y: &mut [T],
    ) -> Result<(), Error> {
        if y.is_empty() {
            return Ok(());
        }
        let adds = scaling.beta != <T as Scalar>::ZERO;
        if scaling.alpha == <T as Scalar>::ZERO {
            if let Some(z) = z.filter(|_| adds) {
                y.copy_from_slice(z);
            }
            scaling.scale(y);
            return Ok(());
        }
        let mut workspace = self.workspace(x.len(), y.len())?;
        let Workspace { x: of_x, y: of_y, stream } = &mut workspace;
        of_x.copy_from_slice_on(x, stream)?;
        if adds {
            of_y.copy_from_slice_on(z.unwrap_or(y), stream)?;
        }
        plan.lock().launch_scaled(scaling, of_x, of_y, stream)?;
        of_y.copy_to_slice_on(y, stream)?;
        self.give_back(workspace);
        Ok(())
    }

    fn workspace(&self, x: usize, y: usize) -> Result<Workspace<T>, Error> {
        let mut free = self.free();
        let fits = |of: &Workspace<T>| of.x.len() == x && of.y.len() == y;
        if let Some(at) = free.iter().rposition(fits) {
            return Ok(free.remove(at));
        }
        drop(free);
        let device = &self.gpu.device;
        Ok(Workspace {
            x: DeviceBuffer::uninitialized(device, x)?,
            y: DeviceBuffer::uninitialized(device, y)?,
            stream: Stream::new(device)?,
        })
    }

    fn give_back(&self, workspace: Workspace<T>) {
        let mut free = self.free();
        free.push(workspace);
        let over = (free.len() > MOST_FREE).then(|| free.remove(0));
        // Freed without the lock: that waits for the device.
        drop(free);
        drop(over);
    }

    fn free(&self) -> MutexGuard<'_, Vec<Workspace<T>>> {
        // A list of workspaces is whole after a panic.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: DeviceScalar> GpuProducts<T> for Plans<T> {
    fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    fn recipe(&self) -> &Recipe {
        &self.product.recipe
    }

    fn describe(&self, plain: Description) -> Description {
        let measured = *self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let transposed = self.others[1].get().or(self.others[2].get());
        let (device, bytes) = (&self.gpu.device, self.product.footprint.bytes_moved);
        let rates = device.rates(&self.options.budget);
        let expected = rates.and_then(|rates| rates.time(bytes, device.info().l2_bytes));
        Description {
            device: device.info().name.clone(),
            expected,
            reason: self.reason,
            planning: self.planning,
            measured,
            bytes_per_product: bytes,
            transposed_products: self.transposed_products.load(Ordering::Relaxed),
            transposed_recipe: transposed.map(|plan| plan.recipe.clone()),
            ..plain
        }
    }

    fn memory_bytes(&self) -> u64 {
        let others = self.others.iter().filter_map(OnceLock::get);
        let vectors = others.chain([&self.product]).map(|plan| plan.footprint.plan_bytes);
        let many = self.many.sum(|plan| plan.footprint.plan_bytes);
        let free = self.free();
        let free: usize = free.iter().map(|of| of.x.bytes() + of.y.bytes()).sum();
        vectors.sum::<u64>() + many + free as u64
    }

    fn measure(&self, a: &Csr<T>) -> Option<Duration> {
        let bytes = (a.rows() + a.cols()) * T::BYTES;
        self.options.budget.check_bytes("vectors to time", bytes as u128).ok()?;
        let Workspace { mut x, mut y, stream } = self.workspace(a.cols(), a.rows()).ok()?;
        x.enqueue_zero(&stream).ok()?;
        let (min_time, max_time) = (Duration::from_millis(1), Duration::from_millis(100));
        let sampling = Sampling { warm_up: 2, iterations: 10, min_time, max_time };
        let run = |stream: &Stream| self.product.lock().launch(&x, &mut y, stream);
        let seconds = spm_gpu::time(&stream, &sampling, run).ok()?.min_s;
        let measured = Duration::from_secs_f64(seconds);
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
        Some(measured)
    }

    fn on_host(
        &self,
        a: &Csr<T>,
        form: Form,
        (alpha, beta): (T, T),
        x: &[T],
        z: Option<&[T]>,
        y: &mut [T],
    ) -> Result<(), Error> {
        self.run(self.form(a, form)?, Scaling::new(alpha, beta), x, z, y)
    }

    fn on_device(
        &self,
        a: &Csr<T>,
        form: Form,
        (alpha, beta): (T, T),
        x: &DeviceVector<T>,
        z: Option<&DeviceVector<T>>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), Error> {
        let mut plan = self.form(a, form)?.lock();
        let scaling = Scaling::new(alpha, beta);
        match z {
            Some(z) => y.set_matrix_product_adding(&mut **plan, scaling, x, z)?,
            None => y.set_matrix_product(&mut **plan, scaling, x)?,
        }
        Ok(())
    }

    fn in_stream(
        &self,
        a: &Csr<T>,
        form: Form,
        (alpha, beta): (T, T),
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let mut plan = self.form(a, form)?.lock();
        Ok(plan.launch_scaled(Scaling::new(alpha, beta), x, y, stream)?)
    }

    fn many_in_stream(
        &self,
        a: &Csr<T>,
        dense: DenseShape,
        (alpha, beta): (T, T),
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let plan = self.dense(a, dense)?;
        let mut plan = plan.lock();
        Ok(plan.launch_scaled(Scaling::new(alpha, beta), x, y, stream)?)
    }

    fn many_on_device(
        &self,
        a: &Csr<T>,
        dense: DenseShape,
        (alpha, beta): (T, T),
        x: &DeviceVector<T>,
        y: &mut DeviceVector<T>,
    ) -> Result<(), Error> {
        let plan = self.dense(a, dense)?;
        Ok(y.set_matrix_product(&mut **plan.lock(), Scaling::new(alpha, beta), x)?)
    }

    fn many_on_host(
        &self,
        a: &Csr<T>,
        dense: DenseShape,
        (alpha, beta): (T, T),
        x: &[T],
        y: &mut [T],
    ) -> Result<(), Error> {
        self.run(&*self.dense(a, dense)?, Scaling::new(alpha, beta), x, None, y)
    }

    fn set_values(&mut self, a: &mut Arc<Csr<T>>, values: Replacement<'_, T>) -> bool {
        let Ok(on_device) = DeviceBuffer::from_slice(&self.gpu.device, values.get()) else {
            return false;
        };
        let stream = &self.gpu.stream;
        if self.product.get_mut().set_values(&on_device, stream).is_err() {
            return false;
        }
        values.put_into(Arc::make_mut(a));
        // The other plans take them, too, or are made again when they are needed. Conjugate values and
        // those in the order of the transpose are others.
        self.others = Default::default();
        self.many.get_mut().retain_mut(|(_, plan)| {
            Arc::get_mut(plan)
                .is_some_and(|plan| plan.get_mut().set_values(&on_device, stream).is_ok())
        });
        true
    }

    fn again(&self, a: &Csr<T>) -> Result<Box<dyn GpuProducts<T>>, Error> {
        let gpu = self.gpu.clone();
        // After the first new values more are likely.
        let options = Options { new_values: true, ..self.options.clone() };
        let with = |label| Plan::of_vectors(&gpu, a, Form::PLAIN, label, &options);
        let (product, reason) = match with(self.recipe().kernel()) {
            Err(Error::Plan(PlanError::Unsupported { .. } | PlanError::Format(_))) => {
                (with(DIRECT)?, Reason::NewValues)
            }
            planned => (planned?, self.reason),
        };
        Ok(Box::new(Self::new(gpu, options, product, reason, self.planning)))
    }
}
