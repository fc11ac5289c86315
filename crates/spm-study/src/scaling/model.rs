//! A model of a distributed product on more ranks than were measured, fitted to rows of results.

use spm_dist::model::{Link, Load, Machine};

use super::{Work, side_of};
use crate::results::{Row, SYNTHETIC, Status};

/// Ranks that are modelled.
pub const MODELLED: [usize; 8] = [1, 8, 27, 64, 512, 1000, 4096, 16_384];

/// GPUs that NVLink connects; messages between more go over a network.
const GPUS_OF_A_HOST: usize = 8;

/// A 27-point stencil in boxes on any number of ranks: bandwidth and messages are those of measured rows, or, for
/// messages between GPUs that were not measured, those of [`Link`].
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    side: f64,
    weak: bool,
    bytes_per_row: f64,
    /// Bytes of a point that a rank receives: an element for each column of X.
    bytes_per_point: f64,
    /// The run that the bandwidth is of.
    ranks: u64,
    bandwidth: f64,
    /// Latency and bandwidth of messages; `None` for those of [`Link`].
    messages: Option<(f64, f64)>,
    gpu: bool,
}

impl Model {
    /// The model of the rows of one matrix and one kind of work, strong or weak, on one backend. `None` without a row
    /// that worked, for other matrices than `stencil27[n=SIDE]`, for other work than products, and for CPU cores where
    /// no message was measured.
    pub fn of(rows: &[&Row]) -> Option<Self> {
        let worked = || {
            let timed = rows.iter().filter(|row| row.status == Status::Ok);
            timed.filter_map(|row| Some((*row, Product::of(row)?)))
        };
        let (row, product) = worked().max_by_key(|(row, _)| row.ranks)?;
        let matrix = row.matrix.strip_prefix(SYNTHETIC)?;
        let work = Work::of(row);
        if work == Work::Cg {
            return None;
        }
        let gpu = row.backend == "gpu";
        let messages = row.latency_s.zip(row.link_gbytes_per_s.map(|link| link * 1e9));
        if messages.is_none() && !gpu {
            return None;
        }
        let of_row =
            |(row, product): (&Row, Product)| product.bytes * product.ranks / row.rows as f64;
        Some(Self {
            side: side_of(matrix)? as f64,
            weak: row.experiment.ends_with("weak"),
            bytes_per_row: worked().map(of_row).fold(0.0, f64::max),
            bytes_per_point: (work.columns() * size_of::<f64>()) as f64,
            ranks: row.ranks?,
            bandwidth: product.bytes / product.busy_s,
            messages,
            gpu,
        })
    }

    fn machine(&self, ranks: usize) -> Machine {
        let of_link = |link: Link| (link.latency, link.bandwidth);
        let link = if ranks <= GPUS_OF_A_HOST { Link::NVLINK } else { Link::NETWORK };
        let (latency, link) = self.messages.unwrap_or(of_link(link));
        Machine { bandwidth: self.bandwidth, latency, link }
    }

    /// The work of a rank in the middle.
    pub fn load(&self, ranks: usize) -> Load {
        let side = if self.weak { self.side } else { self.side / (ranks as f64).cbrt() };
        Load::stencil27(side, ranks, self.bytes_per_row, self.bytes_per_point)
    }

    /// Seconds of a product, with the exchange beside the local block or before it.
    pub fn seconds(&self, ranks: usize, overlap: bool) -> f64 {
        self.machine(ranks).product(&self.load(ranks), overlap)
    }

    /// The time of a rank's work on one rank over that of a product.
    pub fn efficiency(&self, ranks: usize, overlap: bool) -> f64 {
        let alone = self.seconds(1, true);
        let work = if self.weak { alone } else { alone / ranks as f64 };
        work / self.seconds(ranks, overlap)
    }

    /// What the model takes, in a sentence without its end.
    pub fn describe(&self) -> String {
        let what = if self.gpu { "GPU" } else { "rank" };
        let of =
            |latency: f64, link: f64| format!("{:.1} us and {:.2} GB/s", latency * 1e6, link / 1e9);
        let messages = match self.messages {
            Some((latency, link)) => {
                format!("messages of {}, as between two of these", of(latency, link))
            }
            None => {
                let (near, far) = (Link::NVLINK, Link::NETWORK);
                format!(
                    "messages of {} ({}), beyond {GPUS_OF_A_HOST} GPUs of {} ({})",
                    of(near.latency, near.bandwidth),
                    near.name,
                    of(far.latency, far.bandwidth),
                    far.name
                )
            }
        };
        format!(
            "{:.1} GB/s a {what}, as measured on {} of them; {messages}",
            self.bandwidth / 1e9,
            self.ranks
        )
    }
}

/// What a row tells of a product.
struct Product {
    ranks: f64,
    /// Bytes that the busiest rank moves.
    bytes: f64,
    /// Seconds without what is left of the exchange.
    busy_s: f64,
}

impl Product {
    fn of(row: &Row) -> Option<Self> {
        let (ranks, median_s) = (row.ranks? as f64, row.median_s?);
        let hidden = row.overlap.unwrap_or(1.0);
        let left = row.exchange_s.map_or(0.0, |exchange| (1.0 - hidden) * exchange);
        let bytes = row.gbytes_per_s? * 1e9 * median_s / ranks;
        let busy_s = median_s - left;
        (busy_s > 0.0 && bytes > 0.0 && row.rows > 0).then_some(Self { ranks, bytes, busy_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 256^3 points a GPU, each row 340 bytes, at 4 TB/s.
    fn h200() -> Row {
        let (rows, bandwidth) = (256_u64.pow(3), 4e12);
        let seconds = rows as f64 * 340.0 / bandwidth;
        Row {
            experiment: "scaling-weak".to_owned(),
            matrix: "synthetic:stencil27[n=256]".to_owned(),
            backend: "gpu".to_owned(),
            rows,
            ranks: Some(1),
            median_s: Some(seconds),
            gbytes_per_s: Some(bandwidth / 1e9),
            ..Row::default()
        }
    }

    fn close(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn gpus_without_measured_messages_have_those_of_their_links() {
        let model = Model::of(&[&h200()]).unwrap();
        let bytes = 256_f64.powi(3) * 340.0;
        close(model.seconds(1, true), bytes / 4e12);
        close(model.efficiency(1, false), 1.0);
        // 26 messages of 10 us and 6 n^2 + 12 n + 8 elements over 50 GB/s.
        let exchange = 26.0 * 10e-6 + 8.0 * (6.0 * 65_536.0 + 12.0 * 256.0 + 8.0) / 50e9;
        close(model.seconds(4096, false), bytes / 4e12 + exchange);
        // It disappears behind the local block.
        close(model.efficiency(4096, true), 1.0);
        assert!((0.78..0.83).contains(&model.efficiency(4096, false)));
        let near = 7.0 * 9e-6 + model.load(8).halo / 298e9;
        close(model.seconds(8, false), bytes / 4e12 + near);
        let text = model.describe();
        assert!(text.contains("4000.0 GB/s a GPU") && text.contains("assumed"), "{text}");
    }

    #[test]
    fn a_model_is_of_the_run_on_most_ranks() {
        let cpu = |ranks: u64, median_s: f64| Row {
            experiment: "scaling-strong".to_owned(),
            backend: "cpu".to_owned(),
            rows: 1000,
            matrix: "synthetic:stencil27[n=10]".to_owned(),
            ranks: Some(ranks),
            median_s: Some(median_s),
            // 400,000 bytes of all ranks.
            gbytes_per_s: Some(4e5 / median_s / 1e9),
            exchange_s: Some(1e-4),
            overlap: (ranks > 1).then_some(0.75),
            latency_s: (ranks > 1).then_some(1e-6),
            link_gbytes_per_s: (ranks > 1).then_some(10.0),
            ..Row::default()
        };
        let (one, two) = (cpu(1, 9e-4), cpu(2, 5.25e-4));
        // 200,000 bytes a rank in 525 us without a quarter of the exchange.
        let model = Model::of(&[&two, &one]).unwrap();
        close(model.bandwidth, 2e5 / 5e-4);
        close(model.seconds(1, true), 4e5 / 4e8);
        close(model.load(8).bytes, 5e4);
        close(model.seconds(8, false), 5e4 / 4e8 + 7e-6 + model.load(8).halo / 1e10);
        assert!(model.describe().contains("messages of 1.0 us and 10.00 GB/s"));
        assert_eq!(Model::of(&[&one]), None, "no message was measured");
        let wide = Model::of(&[&Row { k: Some(32), ..two.clone() }]).unwrap();
        close(wide.load(8).halo, 32.0 * model.load(8).halo);
        assert_eq!(Model::of(&[&Row { op: "cg".to_owned(), ..two.clone() }]), None);
        let failed = Row { status: Status::Mismatch, ..two.clone() };
        assert_eq!(Model::of(&[&failed]), None);
        let mesh = Row { matrix: "synthetic:mesh3[n=100]".to_owned(), ..two };
        assert_eq!(Model::of(&[&mesh]), None);
    }
}
