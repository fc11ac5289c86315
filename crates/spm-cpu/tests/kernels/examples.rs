//! The examples, at a size that takes no time.

#[allow(dead_code, reason = "an example is a program of its own: its main is not called here")]
#[path = "../../examples/conjugate_gradient.rs"]
mod conjugate_gradient;
#[allow(dead_code, reason = "an example is a program of its own: its main is not called here")]
#[path = "../../examples/page_rank.rs"]
mod page_rank;

use conjugate_gradient::run;
use spm_formats::Csr;
use spm_formats::matrix_market::write_csr;
use spm_testing::conjugate_gradient::System;

#[test]
fn conjugate_gradient_solves_a_laplacian_and_a_file() {
    let system = System::laplacian(20).unwrap();
    let solution = run(&system, 1e-10, 200).unwrap();
    assert!(solution.residual < 1e-9 && solution.iterations < 200);
    assert!(solution.x.iter().all(|x| (x - 1.0).abs() < 1e-7));

    let folder = std::env::temp_dir().join(format!("spm-examples-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("laplacian.mtx");
    write_csr(&path, system.a.view(), &[]).unwrap();
    let read = System::read(path.to_str().unwrap()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(read.a, system.a);

    let indefinite =
        Csr::new((2, 2), vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, -2.0, -2.0, 1.0]).unwrap();
    let system = System { name: "indefinite".into(), a: indefinite };
    let error = run(&system, 1e-10, 10).map(|solution| solution.x).unwrap_err().to_string();
    assert!(error.starts_with("not positive definite"), "{error}");
}

#[test]
fn ranks_follow_the_links() {
    // 0 -> 1, 0 -> 2, 1 -> 2, 2 -> 0, and 3 with no link to anybody.
    let graph = Csr::new((4, 4), vec![0, 2, 3, 4, 4], vec![1, 2, 2, 0], vec![1.0; 4]).unwrap();
    let ranks = page_rank::page_rank(&graph, 0.85, 1e-13, 1000).unwrap();
    assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    // By hand: each rank is that of the vertices that link to it, and what everybody gets.
    let everywhere = (0.85 * ranks[3] + 0.15) / 4.0;
    let expected = [ranks[2], ranks[0] / 2.0, ranks[0] / 2.0 + ranks[1], 0.0];
    for (rank, from) in ranks.iter().zip(expected) {
        assert!((rank - (0.85 * from + everywhere)).abs() < 1e-12, "{ranks:?}");
    }
    assert!(ranks[2] > ranks[1] && ranks[0] > ranks[1] && ranks[1] > ranks[3]);
}
