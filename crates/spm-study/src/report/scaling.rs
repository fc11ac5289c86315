//! Distributed products: time and efficiency over ranks and GPUs, measured, and modelled beyond.

use super::load::{Results, distinct, plain_name, variant};
use super::model::{Cell, Section, Table, percent, seconds};
use super::plot::{Point, Series, XyPlot};
use super::scale::Kind;
use super::svg::{Figure, Panel};
use crate::results::Row;
use crate::scaling::{MODELLED, Model, Work};

/// Anchor of the section.
pub(super) const ID: &str = "scaling";
/// What the names of the experiments begin with.
const PREFIX: &str = "scaling-";

/// Whether this section draws an experiment.
pub(super) fn draws(experiment: &str) -> bool {
    experiment.starts_with(PREFIX)
}

/// The products of one matrix, or iterations with them, strong or weak, on ranks of one kind.
struct Products<'a> {
    experiment: &'a str,
    backend: &'a str,
    matrix: &'a str,
    work: Work,
    /// By ascending ranks; of several kernels on as many ranks the fastest.
    rows: Vec<&'a Row>,
    model: Option<Model>,
}

fn ranks(row: &Row) -> u64 {
    row.ranks.unwrap_or(1)
}

fn time(row: &Row) -> f64 {
    row.median_s.unwrap_or(f64::NAN)
}

impl<'a> Products<'a> {
    fn of(rows: &[&'a Row], name: (&'a str, &'a str, &'a str, Work)) -> Self {
        let (experiment, backend, matrix, work) = name;
        let mut rows: Vec<&Row> = rows.iter().copied().filter(|row| named(row) == name).collect();
        rows.sort_by(|a, b| ranks(a).cmp(&ranks(b)).then(time(a).total_cmp(&time(b))));
        rows.dedup_by_key(|row| ranks(row));
        let model = Model::of(&rows);
        Self { experiment, backend, matrix, work, rows, model }
    }

    fn weak(&self) -> bool {
        self.experiment.ends_with("weak")
    }

    /// Against the run on the fewest ranks.
    fn efficiency(&self, row: &Row) -> f64 {
        let first = self.rows[0];
        let ratio = time(first) / time(row);
        if self.weak() { ratio } else { ratio * ranks(first) as f64 / ranks(row) as f64 }
    }

    fn mode(&self) -> &str {
        self.experiment.trim_start_matches(PREFIX)
    }

    fn work_name(&self) -> String {
        match self.work {
            Work::Spmv => "SpMV".to_owned(),
            Work::Spmm(k) => format!("SpMM k = {k}"),
            Work::Cg => "iteration of CG".to_owned(),
        }
    }

    fn name(&self) -> String {
        let backend = self.backend.to_uppercase();
        format!("{backend} {}, {}, {}", self.mode(), self.work_name(), plain_name(self.matrix))
    }

    /// A panel of what is measured, and of what is modelled with and without overlap.
    fn panel(
        &self,
        what: &str,
        (y_kind, reference): (Kind, Option<f64>),
        measured: impl Fn(&Row) -> f64,
        modelled: impl Fn(&Model, usize, bool) -> f64,
    ) -> Option<Panel> {
        let point = |row: &&Row| {
            let tip = format!(
                "measured on {} {}\n{}, efficiency {}\n{}",
                ranks(row),
                if self.backend == "gpu" { "GPUs" } else { "ranks" },
                seconds(time(row)),
                percent(self.efficiency(row)),
                variant(row)
            );
            Point { x: ranks(row) as f64, y: measured(row), tip }
        };
        let points = self.rows.iter().map(point).collect();
        let line = |model: &Model, index: usize, overlap: bool| {
            let at = |&ranks: &usize| Point {
                x: ranks as f64,
                y: modelled(model, ranks, overlap),
                tip: String::new(),
            };
            let points = MODELLED.iter().map(at).collect();
            Series { index, name: LEGEND[index].to_owned(), points }
        };
        let modelled = self.model.iter().flat_map(|m| [line(m, 1, true), line(m, 2, false)]);
        XyPlot {
            title: format!("{}: {what}", self.name()),
            x_label: if self.backend == "gpu" { "GPUs" } else { "ranks" }.to_owned(),
            x_kind: Kind::Log2,
            y_kind,
            lines: vec![Series { index: 0, name: LEGEND[0].to_owned(), points }],
            modelled: modelled.collect(),
            reference,
            ..XyPlot::default()
        }
        .panel()
    }

    fn panels(&self) -> impl Iterator<Item = Panel> {
        let times = self.panel("seconds", (Kind::Log, None), time, Model::seconds);
        let efficiency = self.panel(
            "efficiency, %",
            (Kind::Linear, Some(100.0)),
            |row| 100.0 * self.efficiency(row),
            |model, ranks, overlap| 100.0 * model.efficiency(ranks, overlap),
        );
        [times, efficiency].into_iter().flatten()
    }

    fn table(&self, table: &mut Table) {
        let name = |how: &str| {
            vec![
                Cell::text(self.mode()),
                Cell::text(self.backend),
                Cell::text(self.matrix),
                Cell::text(self.work_name()),
                Cell::text(how),
            ]
        };
        for row in &self.rows {
            let mut cells = name("measured");
            cells.extend([
                Cell::Count(ranks(row)),
                Cell::Seconds(time(row)),
                Cell::Fraction(self.efficiency(row)),
                Cell::Missing,
                Cell::option(row.gbytes_per_s, |speed| Cell::Number(speed / 1e3)),
                Cell::option(row.halo_bytes, Cell::Bytes),
                Cell::option(row.neighbours, Cell::Count),
                Cell::option(row.exchange_s, Cell::Seconds),
                Cell::option(row.overlap, Cell::Fraction),
                Cell::text(variant(row)),
            ]);
            table.push(cells);
        }
        for (model, &ranks) in self.model.iter().flat_map(|m| MODELLED.iter().map(move |r| (m, r)))
        {
            let load = model.load(ranks);
            let mut cells = name("modelled");
            cells.extend([
                Cell::Count(ranks as u64),
                Cell::Seconds(model.seconds(ranks, true)),
                Cell::Fraction(model.efficiency(ranks, true)),
                Cell::Fraction(model.efficiency(ranks, false)),
                Cell::Missing,
                Cell::Bytes(load.halo.round() as u64),
                Cell::Count(load.neighbours as u64),
                Cell::Missing,
                Cell::Missing,
                Cell::Missing,
            ]);
            table.push(cells);
        }
    }
}

const LEGEND: [&str; 3] = ["measured", "model, with overlap", "model, without overlap"];

fn named(row: &Row) -> (&str, &str, &str, Work) {
    (&row.experiment, &row.backend, &row.matrix, Work::of(row))
}

/// The section, where distributed products were measured.
pub(super) fn section(results: &Results) -> Option<Section> {
    let rows: Vec<&Row> = results.timed().filter(|row| draws(&row.experiment)).collect();
    let products: Vec<Products<'_>> = distinct(rows.iter().map(|row| named(row)))
        .into_iter()
        .map(|name| Products::of(&rows, name))
        .collect();
    if products.is_empty() {
        return None;
    }
    let mut section = Section::new(ID, "Scaling over ranks and GPUs");
    section.text(
        "Products with a matrix divided by rows, and iterations of conjugate gradients (`cargo xtask bench scaling`, \
         docs/scale.md). Strong: one matrix for \
         all ranks. Weak: a stencil of n points a side for each. Efficiency counts from the fewest ranks measured, \
         and that of the model from one.",
    );
    let models = products.iter().filter_map(|products| {
        let model = products.model.as_ref()?;
        Some(format!("Model of {}: {}", products.name(), model.describe()))
    });
    section.list(models.collect());
    section.figure(Figure {
        id: ID.to_owned(),
        title: "Time and efficiency.".to_owned(),
        caption: "Measured points have marks. Dashed lines without marks are the model.".to_owned(),
        legend: LEGEND.map(str::to_owned).to_vec(),
        panels: products.iter().flat_map(Products::panels).collect(),
        modelled: 2,
        pairs: true,
    });
    let mut table = Table::new(
        format!("{ID}-cases"),
        "Distributed products, measured and modelled",
        &[
            "scaling",
            "backend",
            "matrix",
            "operation",
            "how",
            "ranks",
            "time",
            "efficiency",
            "without overlap",
            "TB/s",
            "halo of a rank",
            "neighbours",
            "exchange alone",
            "hidden",
            "kernel",
        ],
    );
    products.iter().for_each(|products| products.table(&mut table));
    section.table(table);
    Some(section)
}
