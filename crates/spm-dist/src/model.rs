//! A model of the time of a distributed product, fitted to a few measurements.

/// A machine: what the model needs to know of one rank and of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Bytes a second that a rank moves in the local product while all ranks of its node do.
    pub bandwidth: f64,
    /// Seconds of a message without its bytes.
    pub latency: f64,
    /// Bytes a second of messages.
    pub link: f64,
}

/// What messages between ranks take, where it was not measured for them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// What it is, and how its numbers are known.
    pub name: &'static str,
    /// Seconds of a message without its bytes.
    pub latency: f64,
    /// Bytes a second.
    pub bandwidth: f64,
}

impl Link {
    /// Between the GPUs of a host with NVLink: copies of up to 80 KB, and of 16 MiB.
    pub const NVLINK: Self = Self {
        name: "copies over NVLink, measured between two H200",
        latency: 9e-6,
        bandwidth: 298e9,
    };
    /// Between GPUs of several hosts: 400 Gb/s for each.
    pub const NETWORK: Self =
        Self { name: "a network of 400 Gb/s a GPU, assumed", latency: 10e-6, bandwidth: 50e9 };
}

/// The work of the busiest rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Bytes that the product moves in all of the rank's rows.
    pub bytes: f64,
    /// The part of these bytes that belongs to boundary rows, from 0 to 1.
    pub boundary: f64,
    /// Ranks that send to it.
    pub neighbours: f64,
    /// Bytes of its ghost entries.
    pub halo: f64,
}

impl Load {
    /// A 27-point stencil on a box of `side` points a side with neighbours on all sides, of those that
    /// `ranks` ranks can have: exact for 27 ranks and more.
    ///
    /// `bytes_per_row` is what the product moves for one row; elements of x have `element` bytes.
    pub fn stencil27(side: f64, ranks: usize, bytes_per_row: f64, element: f64) -> Self {
        let boxes = crate::Boxes::of_equal_size(1, ranks).boxes();
        // A box in the middle of the grid of boxes has two neighbours along an axis, if there are three.
        let near = boxes.map(|boxes| boxes.min(3) as f64);
        let extended = near.map(|near| side + near - 1.0).iter().product::<f64>();
        let inner = near.map(|near| (side - near + 1.0).max(0.0)).iter().product::<f64>();
        let points = side.powi(3);
        Self {
            bytes: points * bytes_per_row,
            boundary: 1.0 - inner / points,
            neighbours: near.iter().product::<f64>() - 1.0,
            halo: (extended - points) * element,
        }
    }
}

impl Machine {
    /// Seconds of the exchange of the halo.
    pub fn exchange(&self, load: &Load) -> f64 {
        load.neighbours * self.latency + load.halo / self.link
    }

    /// Seconds of a product: the local block and then the boundary rows, with the exchange beside the
    /// local block (`overlap`) or before it.
    pub fn product(&self, load: &Load, overlap: bool) -> f64 {
        let boundary = load.boundary * load.bytes / self.bandwidth;
        let local = load.bytes / self.bandwidth - boundary;
        let exchange = self.exchange(load);
        boundary + if overlap { local.max(exchange) } else { local + exchange }
    }

    /// The latency and the bandwidth of messages of which two sizes have been timed, (bytes, seconds),
    /// the smaller one first.
    pub fn link(small: (f64, f64), large: (f64, f64)) -> (f64, f64) {
        let link = (large.0 - small.0) / (large.1 - small.1).max(f64::MIN_POSITIVE);
        ((small.1 - small.0 / link).max(0.0), link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formulas for a box with 26 neighbours: 6 n^2 + 12 n + 8 ghost entries.
    #[test]
    fn a_box_in_the_middle_has_26_neighbours() {
        let load = Load::stencil27(100.0, 4096, 340.0, 8.0);
        assert_eq!(load.neighbours, 26.0);
        assert_eq!(load.halo, 8.0 * (6.0 * 1e4 + 1200.0 + 8.0));
        assert!((load.boundary - (1.0 - 98.0_f64.powi(3) / 1e6)).abs() < 1e-12);
        let alone = Load::stencil27(100.0, 1, 340.0, 8.0);
        assert_eq!((alone.neighbours, alone.halo, alone.boundary), (0.0, 0.0, 0.0));
        let two = Load::stencil27(100.0, 2, 340.0, 8.0);
        assert_eq!((two.neighbours, two.halo), (1.0, 8e4));
    }

    #[test]
    fn overlap_hides_what_fits_into_the_local_product() {
        let machine = Machine { bandwidth: 1e9, latency: 1e-6, link: 1e9 };
        let load = Load { bytes: 1e6, boundary: 0.5, neighbours: 10.0, halo: 9e5 };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(machine.exchange(&load), 9.1e-4);
        close(machine.product(&load, false), 1e-3 + 9.1e-4);
        close(machine.product(&load, true), 5e-4 + 9.1e-4);
        let quick = Machine { link: 1e10, ..machine };
        close(quick.product(&load, true), 1e-3);
    }

    #[test]
    fn a_line_through_two_sizes() {
        let (latency, link) = Machine::link((8.0, 2e-6), (1e6 + 8.0, 102e-6));
        assert!((link - 1e10).abs() < 1.0 && (latency - 2e-6).abs() < 1e-8);
    }
}
