//! Products allocate nothing, after the first one.

mod common;

use common::{distribute, matrices};
use spm_dist::threads::run;
use spm_dist::{Communicator, DistOperator, Options};
use spm_testing::allocations::{Counting, of_this_thread};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn products_allocate_nothing() {
    for (name, a) in matrices() {
        for columns in [1, 3] {
            run(3, |comm| {
                let mut options = Options::default();
                (options.columns, options.transpose) = (columns, columns == 1);
                let a = distribute(comm, &a)?;
                let (rows, cols) = (a.local_rows() * columns, a.local_cols() * columns);
                let mut op = DistOperator::new(comm, a, &options)?;
                let (x, b, mut y) = (vec![1.0; cols], vec![1.0; rows], vec![0.0; rows]);
                let mut t = vec![0.0; cols];
                let mut round = || {
                    op.apply(&x, &mut y)?;
                    op.residual(&x, &b, &mut y)?;
                    op.apply_scaled(2.0, &x, -1.0, &mut y)?;
                    if columns == 1 { op.apply_transpose(&b, &mut t) } else { Ok(()) }
                };
                round()?;
                let before = of_this_thread();
                (0..3).try_for_each(|_| round())?;
                assert_eq!(of_this_thread(), before, "{name} {columns} rank {}", comm.rank());
                Ok(())
            })
            .unwrap();
        }
    }
}
