//! PageRank of a graph (Brin and Page 1998):
//! `cargo run --release -p spm-cpu --example page_rank -- [FILE.mtx]`.
//!
//! FILE is the adjacency matrix of a graph, entry (i, j) a link from i to j, usually a pattern
//! file: `cargo xtask download-suitesparse amazon0302` puts one to
//! `data/suitesparse/SNAP/amazon0302.mtx`. Values are not looked at. Without a file the graph is a
//! generated one with power-law degrees.

use spm_cpu::{PlanOptions, spmv, transpose};
use spm_formats::Csr;
use spm_formats::kernel::TransposeOutput;
use spm_formats::matrix_market::{self, ReadOptions};
use spm_testing::generate;

type AnyError = Box<dyn std::error::Error>;

const GENERATED: &str = "powerlaw[rows=200000,cols=200000,entries=2000000,longest=5000]";

fn main() -> Result<(), AnyError> {
    let graph: Csr<f64> = match std::env::args().nth(1) {
        Some(path) => matrix_market::read_csr(path, &ReadOptions::default())?,
        None => generate::named(GENERATED)?.generate()?,
    };
    let ranks = page_rank(&graph, 0.85, 1e-10, 1000)?;
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by(|&i, &j| ranks[j].total_cmp(&ranks[i]));
    println!("vertex (from 1)  rank");
    for &vertex in order.iter().take(10) {
        println!("{:15}  {:.3e}", vertex + 1, ranks[vertex]);
    }
    Ok(())
}

/// The rank of each vertex; ranks sum up to 1.
///
/// r = d (A^T D^-1 r + rank of the vertices without links / n) + (1 - d) / n, iterated until the
/// ranks change by less than `tolerance` in sum, `most` times at most. D holds the numbers of links
/// of the vertices.
pub(crate) fn page_rank(
    graph: &Csr<f64>,
    d: f64,
    tolerance: f64,
    most: usize,
) -> Result<Vec<f64>, AnyError> {
    let (n, links) = (graph.rows(), graph.nnz());
    if n != graph.cols() {
        return Err(format!("expected a square matrix, found {:?}", graph.shape()).into());
    }
    if n == 0 {
        return Ok(Vec::new());
    }
    let options = PlanOptions::default();

    // Who links to a vertex: the transpose of the matrix with 1 for every link.
    let ones = graph.map(|_| 1.0);
    let kernel = transpose::find::<f64>("auto").expect("auto is always there");
    let mut transposed = TransposeOutput::new(n, links);
    kernel.plan(ones.view(), &kernel.info.defaults(), &options)?.run(&mut transposed)?;
    let TransposeOutput { col_ptr, row_ind, values } = transposed;
    let incoming = Csr::new((n, n), col_ptr, row_ind, values)?;

    let kernel = spmv::find::<f64>("auto").expect("auto is always there");
    let plan = kernel.plan(incoming.view(), &kernel.info.defaults(), &options)?;
    let degree: Vec<f64> = (0..n).map(|i| graph.row(i).0.len() as f64).collect();
    let (mut ranks, mut shares, mut next) = (vec![1.0 / n as f64; n], vec![0.0; n], vec![0.0; n]);
    for iteration in 1..=most {
        let mut dangling = 0.0;
        for i in 0..n {
            if degree[i] > 0.0 {
                shares[i] = ranks[i] / degree[i];
            } else {
                (shares[i], dangling) = (0.0, dangling + ranks[i]);
            }
        }
        plan.run(&shares, &mut next)?;
        let everywhere = (d * dangling + 1.0 - d) / n as f64;
        next.iter_mut().for_each(|rank| *rank = d * *rank + everywhere);
        let change: f64 = ranks.iter().zip(&next).map(|(old, new)| (old - new).abs()).sum();
        std::mem::swap(&mut ranks, &mut next);
        if change < tolerance {
            println!("{n} vertices, {links} links: {iteration} iterations, change {change:.1e}");
            return Ok(ranks);
        }
    }
    Err(format!("the ranks still change after {most} iterations").into())
}
