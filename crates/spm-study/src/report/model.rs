//! The report as a document: sections of text, tables and figures, before it becomes HTML, Markdown,
//! CSV and SVG.

use super::svg::Figure;

/// The whole page.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) title: String,
    pub(super) subtitle: String,
    /// Types of the values, and backends: what the page can switch between.
    pub(super) precisions: Vec<String>,
    pub(super) backends: Vec<String>,
    pub(super) sections: Vec<Section>,
}

/// One entry of the table of contents.
#[derive(Debug, Default)]
pub(super) struct Section {
    /// Anchor, also the start of the file names of its tables and figures.
    pub(super) id: String,
    pub(super) title: String,
    /// Heading in the table of contents that it stands under.
    pub(super) group: &'static str,
    /// The type of the values that it tells of, in results of more than one.
    pub(super) precision: String,
    pub(super) blocks: Vec<Block>,
}

impl Section {
    pub(super) fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), ..Self::default() }
    }

    /// Puts the section under a heading of the table of contents.
    pub(super) fn in_group(mut self, group: &'static str) -> Self {
        self.group = group;
        self
    }

    /// Makes it the section of one type of values: the ids of what is in it end in its name.
    pub(super) fn of_precision(&mut self, precision: &str) {
        self.precision = precision.to_owned();
        self.title = format!("{} ({precision})", self.title);
        let suffix = |id: &mut String| {
            if !id.is_empty() {
                *id = format!("{id}-{precision}");
            }
        };
        suffix(&mut self.id);
        fn each(blocks: &mut [Block], change: &dyn Fn(&mut String)) {
            for block in blocks {
                match block {
                    Block::Table(table) => change(&mut table.id),
                    Block::Figure(figure) => change(&mut figure.id),
                    Block::Details { id, blocks, .. } => {
                        change(id);
                        each(blocks, change);
                    }
                    Block::Links { links, .. } => {
                        links.iter_mut().for_each(|link| change(&mut link.target));
                    }
                    _ => {}
                }
            }
        }
        each(&mut self.blocks, &suffix);
    }

    pub(super) fn text(&mut self, text: impl Into<String>) -> &mut Self {
        self.blocks.push(Block::Text(text.into()));
        self
    }

    pub(super) fn heading(&mut self, text: impl Into<String>) -> &mut Self {
        self.blocks.push(Block::Heading(text.into()));
        self
    }

    pub(super) fn list(&mut self, items: Vec<String>) -> &mut Self {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
        self
    }

    /// A table without rows is left out.
    pub(super) fn table(&mut self, table: Table) -> &mut Self {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
        self
    }

    /// A figure without panels is left out.
    pub(super) fn figure(&mut self, figure: Figure) -> &mut Self {
        if !figure.panels.is_empty() {
            self.blocks.push(Block::Figure(figure));
        }
        self
    }

    /// Says in one line that there is no data, and which command brings it.
    pub(super) fn missing(&mut self, what: &str, command: &str) -> &mut Self {
        self.blocks.push(Block::Missing { what: what.to_owned(), command: command.to_owned() });
        self
    }

    /// Blocks that are folded away on screen; the id of `inner` is their anchor.
    pub(super) fn details(&mut self, summary: impl Into<String>, inner: Section) -> &mut Self {
        if !inner.blocks.is_empty() {
            let (id, blocks) = (inner.id, inner.blocks);
            self.blocks.push(Block::Details { id, summary: summary.into(), blocks });
        }
        self
    }

    /// Links to tables of the page.
    pub(super) fn links(&mut self, text: impl Into<String>, links: Vec<Link>) -> &mut Self {
        if !links.is_empty() {
            self.blocks.push(Block::Links { text: text.into(), links });
        }
        self
    }
}

/// One piece of a section.
#[derive(Debug)]
pub(super) enum Block {
    Heading(String),
    Text(String),
    List(Vec<String>),
    Missing { what: String, command: String },
    Table(Table),
    Figure(Figure),
    Details { id: String, summary: String, blocks: Vec<Block> },
    Links { text: String, links: Vec<Link> },
}

/// A link to a table, of which the page then shows the rows with these words.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) text: String,
    pub(super) target: String,
    pub(super) words: String,
}

/// A table; also a file `tables/ID.csv`.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) id: String,
    pub(super) title: String,
    /// Heads of the columns, unit in brackets.
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// Rows that the page folds away, and what they are: nothing was measured for them.
    pub(super) folded: Vec<usize>,
    pub(super) folded_as: &'static str,
    /// Said under the table.
    pub(super) note: String,
}

impl Table {
    pub(super) fn new(id: impl Into<String>, title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "{}", self.id);
        self.rows.push(row);
    }

    /// Folds away the rows that `without` takes.
    pub(super) fn fold(mut self, what: &'static str, without: impl Fn(&[Cell]) -> bool) -> Self {
        self.folded = (0..self.rows.len()).filter(|&row| without(&self.rows[row])).collect();
        self.folded_as = what;
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Takes out the columns whose cells are all alike, and says so below: they would widen the
    /// table without telling rows apart.
    pub(super) fn without_constants(mut self) -> Self {
        let Some((first, others)) = self.rows.split_first() else { return self };
        if others.is_empty() {
            return self;
        }
        let constant: Vec<bool> =
            (0..self.columns.len()).map(|c| others.iter().all(|row| row[c] == first[c])).collect();
        let said: Vec<String> = (0..self.columns.len())
            .filter(|c| constant[*c] && !matches!(first[*c].raw().as_str(), ""))
            .map(|c| format!("{} {}", self.columns[c], first[c].display()))
            .collect();
        let keep = |c: usize| !constant[c];
        let mut column = 0..;
        self.columns.retain(|_| column.next().is_some_and(keep));
        for row in &mut self.rows {
            let mut column = 0..;
            row.retain(|_| column.next().is_some_and(keep));
        }
        if !said.is_empty() {
            self.note =
                format!("In all rows: {}. {}", said.join(", "), self.note).trim_end().to_owned();
        }
        self
    }

    /// Whether each column holds numbers (and is set flush right).
    pub(super) fn numeric(&self) -> Vec<bool> {
        (0..self.columns.len())
            .map(|c| {
                let mut cells = self.rows.iter().map(|row| &row[c]);
                cells.clone().any(Cell::is_number)
                    && cells.all(|cell| cell.is_number() || matches!(cell, Cell::Missing))
            })
            .collect()
    }
}

/// One value with the way to print it; CSV gets the value unrounded.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Missing,
    Text(String),
    /// Set in a fixed-width face.
    Code(String),
    /// Sentences, broken over lines.
    Prose(String),
    Count(u64),
    /// A number with the digits that were printed.
    Exact(String),
    /// Three significant digits.
    Number(f64),
    /// Seconds, printed with the unit that fits.
    Seconds(f64),
    /// A fraction, printed in percent.
    Fraction(f64),
    /// A ratio, printed with a multiplication sign.
    Ratio(f64),
    /// Bytes, printed with the unit that fits.
    Bytes(u64),
    /// Best of its row.
    Best(Box<Cell>),
    /// Text that leads to an anchor of the page.
    Link(String, String),
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn code(text: impl Into<String>) -> Self {
        Self::Code(text.into())
    }

    /// `make(value)`, or an empty cell.
    pub(super) fn option<T>(value: Option<T>, make: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Missing, make)
    }

    fn is_number(&self) -> bool {
        match self {
            Self::Missing | Self::Text(_) | Self::Code(_) | Self::Prose(_) | Self::Link(..) => {
                false
            }
            Self::Best(inner) => inner.is_number(),
            _ => true,
        }
    }

    /// As people read it.
    pub(super) fn display(&self) -> String {
        match self {
            Self::Missing => "–".to_owned(),
            Self::Text(text)
            | Self::Code(text)
            | Self::Prose(text)
            | Self::Exact(text)
            | Self::Link(text, _) => text.clone(),
            Self::Count(count) => grouped(*count),
            Self::Number(value) => significant(*value),
            Self::Seconds(value) => seconds(*value),
            Self::Fraction(value) => percent(*value),
            Self::Ratio(value) => format!("{}×", significant(*value)),
            Self::Bytes(value) => bytes(*value),
            Self::Best(inner) => inner.display(),
        }
    }

    /// As programs read it.
    pub(super) fn raw(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Text(text)
            | Self::Code(text)
            | Self::Prose(text)
            | Self::Exact(text)
            | Self::Link(text, _) => text.clone(),
            Self::Count(count) | Self::Bytes(count) => count.to_string(),
            Self::Number(v) | Self::Seconds(v) | Self::Fraction(v) | Self::Ratio(v) => {
                format!("{v}")
            }
            Self::Best(inner) => inner.raw(),
        }
    }
}

/// Three significant digits; very large and very small numbers in powers of ten.
pub(super) fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs().log10().floor();
    if !(-3.0..6.0).contains(&magnitude) {
        return format!("{value:.1e}");
    }
    // 9.995 rounds to 10.0: the magnitude of the rounded number decides the digits.
    let digits = |m: f64| (2.0 - m).clamp(0.0, 6.0) as usize;
    let rounded: f64 = format!("{value:.*}", digits(magnitude)).parse().unwrap_or(value);
    let magnitude = rounded.abs().log10().floor().max(magnitude);
    format!("{value:.*}", digits(magnitude))
}

/// A whole number with its thousands apart.
pub(super) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A time with the unit that fits.
pub(super) fn seconds(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        v if v == 0.0 || v >= 1.0 => (1.0, "s"),
        v if v >= 1e-3 => (1e3, "ms"),
        v if v >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", significant(value * scale))
}

/// A size with the unit that fits.
pub(super) fn bytes(value: u64) -> String {
    let (scale, unit) = match value {
        v if v >= 1 << 30 => (1u64 << 30, "GiB"),
        v if v >= 1 << 20 => (1 << 20, "MiB"),
        v if v >= 1 << 10 => (1 << 10, "KiB"),
        _ => (1, "B"),
    };
    format!("{} {unit}", significant(value as f64 / scale as f64))
}

/// A fraction in percent.
pub(super) fn percent(value: f64) -> String {
    let value = value * 100.0;
    if value.abs() >= 99.95 || value == 0.0 {
        format!("{value:.0} %")
    } else {
        format!("{} %", significant(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_with_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (9.995, "9.99"),
            (9.999, "10.0"),
            (0.001234, "0.00123"),
            (123.4, "123"),
            (99_950.0, "99950"),
            (1.5e7, "1.5e7"),
            (-2.5, "-2.50"),
        ] {
            assert_eq!(significant(value), text);
        }
        assert_eq!(seconds(1.25e-5), "12.5 µs");
        assert_eq!(seconds(2.0), "2.00 s");
        assert_eq!(seconds(3e-9), "3.00 ns");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(12), "12");
        assert_eq!(bytes(1 << 21), "2.00 MiB");
        assert_eq!(percent(0.6488), "64.9 %");
    }

    #[test]
    fn a_column_is_numeric_when_all_its_values_are() {
        let mut table = Table::new("t", "T", &["name", "value", "empty", "mixed"]);
        table.push(vec![Cell::text("a"), Cell::Number(1.0), Cell::Missing, Cell::Count(1)]);
        table.push(vec![Cell::code("b"), Cell::Missing, Cell::Missing, Cell::text("x")]);
        assert_eq!(table.numeric(), [false, true, false, false]);
        let table = table.without_constants();
        assert_eq!(table.columns.len(), 3);
        table.rows.iter().for_each(|row| assert_eq!(row.len(), 3));
        assert_eq!(Cell::Best(Box::new(Cell::Seconds(0.5))).raw(), "0.5");
    }
}
