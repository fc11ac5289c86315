//! The matrix of one rank: a local block in row tiles, and a block of boundary rows.

use std::ops::Range;
use std::sync::Arc;

use spm_formats::csr::check_limits;
use spm_formats::{Csr, FormatError, Scalar, partition};

use crate::comm::{agree, same_everywhere};
use crate::{Communicator, DistError, Halo, Partition, PartitionError, Rows};

/// Entries of a tile of the local block at least: a tile takes much longer than a look at messages.
const TILE_ENTRIES: usize = 1 << 16;
/// Tiles at most: as many looks at messages while the local block is multiplied.
const TILES: usize = 12;

/// A sparse matrix divided by rows over the ranks of a communicator; x is divided by columns, y by rows.
///
/// A rank keeps its rows in two blocks with 32-bit local indices:
///
/// ```text
///   columns of:   other ranks | this rank | other ranks
///   interior row               |  x x   x  |               local block: columns of this rank
///   boundary row           g   |  x     x  |  g   g        boundary block: ghosts and columns used
/// ```
///
/// Rows without entries in columns of other ranks are in the local block, which is multiplied while the
/// halo is exchanged. Boundary rows are whole in the boundary block. Its columns are the ghost entries
/// and the elements of x that boundary rows use, in ascending global order, so that each row of A is
/// summed at once and in the order of its global columns, as on one device: a kernel that sums rows
/// independently gives the same bits on any number of ranks.
///
/// The local block is stored in tiles of consecutive rows, between which the exchange is advanced; it
/// has empty rows in the place of the boundary rows.
#[derive(Debug, Clone, PartialEq)]
pub struct DistCsr<T> {
    pub(crate) rank: usize,
    rows: Partition,
    cols: Partition,
    entries: usize,
    pub(crate) halo: Halo,
    pub(crate) tiles: Vec<Tile<T>>,
    pub(crate) boundary: Boundary<T>,
}

/// Consecutive rows of the local block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tile<T> {
    pub(crate) rows: Range<usize>,
    pub(crate) a: Arc<Csr<T>>,
}

/// The boundary rows, with compressed columns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Boundary<T> {
    /// Local numbers of the rows.
    pub(crate) rows: Vec<u32>,
    /// Columns: ghost entries of lower ranks, elements of this rank's x, ghost entries of higher ranks.
    pub(crate) a: Arc<Csr<T>>,
    /// Ghost entries of lower ranks.
    pub(crate) below: usize,
    /// Local numbers of the elements of this rank's x.
    pub(crate) local: Vec<u32>,
}

impl<T: Scalar> DistCsr<T> {
    /// Takes the rows of this rank; exchanges who needs what of x. Collective.
    ///
    /// # Errors
    /// On every rank the same: a partition for another number of ranks or for other rows or columns than
    /// the matrix has, partitions or shapes that differ between ranks, another version of this crate,
    /// more than 2^32 rows, columns with ghosts, or entries of a tile on one rank. All of these are found
    /// before elements are exchanged.
    pub fn new(
        comm: &(impl Communicator + ?Sized),
        rows: &Partition,
        cols: &Partition,
        matrix: Rows<T>,
    ) -> Result<Self, DistError> {
        agree(comm, check(comm, rows, cols, &matrix))?;
        let identity = format!(
            "version {}, a {} x {} matrix of {}, partitions {:016x} and {:016x}",
            env!("CARGO_PKG_VERSION"),
            rows.total(),
            cols.total(),
            T::NAME,
            rows.digest(),
            cols.digest(),
        );
        same_everywhere(comm, &identity)?;
        let own = cols.range(comm.rank());
        let ghosts = ghosts(&matrix, &own);
        let entries = matrix.nnz();
        let blocks = agree(comm, blocks(matrix, &own, &ghosts).map_err(DistError::from))?;
        let halo = Halo::new(comm, cols, ghosts)?;
        let (tiles, boundary) = blocks;
        let (rows, cols) = (rows.clone(), cols.clone());
        Ok(Self { rank: comm.rank(), rows, cols, entries, halo, tiles, boundary })
    }

    /// The division of the rows, and of y.
    pub fn row_partition(&self) -> &Partition {
        &self.rows
    }

    /// The division of the columns, and of x.
    pub fn col_partition(&self) -> &Partition {
        &self.cols
    }

    /// (rows, columns) of the whole matrix.
    pub fn shape(&self) -> (u64, u64) {
        (self.rows.total(), self.cols.total())
    }

    /// Rows of this rank: elements of its y.
    pub fn local_rows(&self) -> usize {
        self.rows.len(self.rank) as usize
    }

    /// Columns of this rank: elements of its x.
    pub fn local_cols(&self) -> usize {
        self.cols.len(self.rank) as usize
    }

    /// Entries of this rank's rows.
    pub fn local_nnz(&self) -> usize {
        self.entries
    }

    /// Rows of this rank with entries in columns of other ranks.
    pub fn boundary_rows(&self) -> usize {
        self.boundary.rows.len()
    }

    /// Who sends which elements of x to whom.
    pub fn halo(&self) -> &Halo {
        &self.halo
    }

    /// Bytes of this rank's arrays.
    pub fn memory_bytes(&self) -> u64 {
        let tiles = self.tiles.iter().map(|tile| tile.a.memory_bytes()).sum::<u64>();
        let Boundary { rows, a, local, .. } = &self.boundary;
        let boundary = a.memory_bytes() + (size_of_val(&**rows) + size_of_val(&**local)) as u64;
        tiles + boundary + self.halo.memory_bytes()
    }

    /// This rank's rows with global columns.
    pub fn to_rows(&self) -> Rows<T> {
        let mut row_ptr = Vec::with_capacity(self.local_rows() + 1);
        let mut col_ind = Vec::with_capacity(self.entries);
        let mut values = Vec::with_capacity(self.entries);
        row_ptr.push(0);
        self.for_each_global_row(|_, _, entries| {
            for (col, value) in entries {
                col_ind.push(col);
                values.push(value);
            }
            row_ptr.push(values.len());
        });
        Rows { cols: self.cols.total(), row_ptr, col_ind, values }
    }

    /// Calls `visit` with each row of this rank: its local number, its length, and its entries with
    /// global columns.
    pub(crate) fn for_each_global_row(
        &self,
        mut visit: impl FnMut(usize, usize, &mut dyn Iterator<Item = (u64, T)>),
    ) {
        let (mut number, first) = (0, self.cols.range(self.rank).start);
        self.for_each_row(|block, row| {
            let a = match block {
                Block::Tile(tile) => &self.tiles[tile].a,
                Block::Boundary => &self.boundary.a,
            };
            let (cols, values) = a.row(row);
            let entries = cols.iter().zip(values);
            match block {
                Block::Tile(_) => {
                    let mut entries = entries.map(|(&col, &value)| (first + u64::from(col), value));
                    visit(number, cols.len(), &mut entries);
                }
                Block::Boundary => {
                    let mut entries =
                        entries.map(|(&col, &value)| (self.global(col as usize), value));
                    visit(number, cols.len(), &mut entries);
                }
            }
            number += 1;
        });
    }

    /// The global column of a column of the boundary block.
    fn global(&self, col: usize) -> u64 {
        let Boundary { below, local, .. } = &self.boundary;
        if col < *below {
            self.halo.ghosts()[col]
        } else if let Some(&own) = local.get(col - below) {
            self.cols.range(self.rank).start + u64::from(own)
        } else {
            self.halo.ghosts()[col - local.len()]
        }
    }

    /// The local block in one piece.
    #[cfg(feature = "gpu")]
    pub(crate) fn local_block(&self) -> Result<Arc<Csr<T>>, FormatError> {
        if let [tile] = &*self.tiles {
            return Ok(Arc::clone(&tile.a));
        }
        let shape = (self.local_rows(), self.local_cols());
        let entries: usize = self.tiles.iter().map(|tile| tile.a.nnz()).sum();
        check_limits(shape.0 as u64, shape.1 as u64, entries as u64)?;
        let mut row_ptr = Vec::with_capacity(shape.0 + 1);
        let (mut col_ind, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        row_ptr.push(0);
        for Tile { a, .. } in &self.tiles {
            let before = values.len() as u32;
            row_ptr.extend(a.row_ptr()[1..].iter().map(|end| before + end));
            col_ind.extend_from_slice(a.col_ind());
            values.extend_from_slice(a.values());
        }
        Ok(Arc::new(Csr::new(shape, row_ptr, col_ind, values)?))
    }

    /// Values of this rank's rows, in their order: those of each tile, and those of the boundary rows.
    pub(crate) fn split_values(&self, values: &[T]) -> Result<(Vec<Vec<T>>, Vec<T>), FormatError> {
        let (expected, found) = (self.local_nnz(), values.len());
        if expected != found {
            return Err(FormatError::LengthMismatch { what: "values", expected, found });
        }
        let mut parts: Vec<Vec<T>> =
            self.tiles.iter().map(|tile| Vec::with_capacity(tile.a.nnz())).collect();
        let mut of_boundary = Vec::with_capacity(self.boundary.a.nnz());
        let mut rest = values;
        self.for_each_row(|block, row| {
            let (entries, part) = match block {
                Block::Tile(tile) => (self.tiles[tile].a.view().row_range(row), &mut parts[tile]),
                Block::Boundary => (self.boundary.a.view().row_range(row), &mut of_boundary),
            };
            let (row, after) = rest.split_at(entries.len());
            part.extend_from_slice(row);
            rest = after;
        });
        Ok((parts, of_boundary))
    }

    /// Calls `visit` with the block of each row of this rank in order, and the row's number in it.
    pub(crate) fn for_each_row(&self, mut visit: impl FnMut(Block, usize)) {
        let mut boundary = self.boundary.rows.iter().enumerate().peekable();
        for (number, tile) in self.tiles.iter().enumerate() {
            for row in tile.rows.clone() {
                match boundary.next_if(|(_, at)| **at as usize == row) {
                    Some((in_block, _)) => visit(Block::Boundary, in_block),
                    None => visit(Block::Tile(number), row - tile.rows.start),
                }
            }
        }
    }
}

/// Where a row is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Block {
    Tile(usize),
    Boundary,
}

/// What can be checked without other ranks.
fn check<T: Scalar>(
    comm: &(impl Communicator + ?Sized),
    rows: &Partition,
    cols: &Partition,
    matrix: &Rows<T>,
) -> Result<(), DistError> {
    for partition in [rows, cols] {
        let (expected, found) = (comm.size(), partition.ranks());
        if expected != found {
            return Err(PartitionError::Ranks { expected, found }.into());
        }
    }
    let size = |what, expected, found| {
        if expected == found { Ok(()) } else { Err(PartitionError::Size { what, expected, found }) }
    };
    size("rows", matrix.rows() as u64, rows.len(comm.rank()))?;
    size("columns", matrix.cols(), cols.total())?;
    check_limits(rows.len(comm.rank()), cols.len(comm.rank()), 0)?;
    Ok(())
}

/// The columns of entries outside `own`, ascending.
pub(crate) fn ghosts<T>(matrix: &Rows<T>, own: &Range<u64>) -> Vec<u64> {
    let (mut ghosts, mut sorted) = (Vec::new(), 0);
    for &col in matrix.col_ind.iter().filter(|col| !own.contains(col)) {
        ghosts.push(col);
        // Sorted whenever it has doubled, so that it stays as short as the halo is.
        if ghosts.len() >= 2 * sorted + (1 << 12) {
            ghosts.sort_unstable();
            ghosts.dedup();
            sorted = ghosts.len();
        }
    }
    ghosts.sort_unstable();
    ghosts.dedup();
    ghosts.shrink_to_fit();
    ghosts
}

type Blocks<T> = (Vec<Tile<T>>, Boundary<T>);

/// Divides the rows into blocks. Columns are renumbered first and then freed, so that there are never two
/// copies of all of the matrix.
fn blocks<T: Scalar>(
    matrix: Rows<T>,
    own: &Range<u64>,
    ghosts: &[u64],
) -> Result<Blocks<T>, FormatError> {
    let Rows { row_ptr, col_ind, values, .. } = matrix;
    let count = row_ptr.len() - 1;
    let row = |row: usize| row_ptr[row]..row_ptr[row + 1];
    // Columns ascend: the first and the last one tell.
    let remote = |r: usize| {
        let cols = &col_ind[row(r)];
        let outside = |col: Option<&u64>| col.is_some_and(|col| !own.contains(col));
        outside(cols.first()) || outside(cols.last())
    };
    let rows: Vec<u32> = (0..count).filter(|&r| remote(r)).map(|r| r as u32).collect();

    // The boundary block: number the columns of this rank that it uses.
    let below = ghosts.partition_point(|&ghost| ghost < own.start);
    let boundary_entries = || rows.iter().flat_map(|&r| row(r as usize));
    let mut used = vec![false; if rows.is_empty() { 0 } else { (own.end - own.start) as usize }];
    for col in boundary_entries().map(|entry| col_ind[entry]).filter(|col| own.contains(col)) {
        used[(col - own.start) as usize] = true;
    }
    let local: Vec<u32> =
        used.iter().enumerate().filter(|(_, used)| **used).map(|(col, _)| col as u32).collect();
    drop(used);
    let number = |col: u64| {
        let position = if own.contains(&col) {
            let own = (col - own.start) as u32;
            below + local.partition_point(|&other| other < own)
        } else {
            let ghost = ghosts.partition_point(|&other| other < col);
            if ghost < below { ghost } else { ghost + local.len() }
        };
        position as u32
    };
    let shape = (rows.len(), ghosts.len() + local.len());
    let entries = rows.iter().map(|&r| row(r as usize).len()).sum::<usize>();
    check_limits(shape.0 as u64, shape.1 as u64, entries as u64)?;
    let mut boundary_cols = Vec::with_capacity(entries);
    boundary_cols.extend(boundary_entries().map(|entry| number(col_ind[entry])));

    // The local block: entries before each row tell where a tile of equal entries ends.
    let mut sums = Vec::with_capacity(count + 1);
    let (mut sum, mut next) = (0, rows.iter().peekable());
    sums.push(0);
    for r in 0..count {
        if next.next_if(|at| **at as usize == r).is_none() {
            sum += row(r).len();
        }
        sums.push(sum);
    }
    let bounds = partition::by_weight(&sums, (sum / TILE_ENTRIES).clamp(1, TILES));
    let cols = (own.end - own.start) as usize;
    let interior = |r: &usize| sums[r + 1] > sums[*r];
    let mut tile_cols = Vec::with_capacity(bounds.len() - 1);
    for bounds in bounds.windows(2) {
        let entries = sums[bounds[1]] - sums[bounds[0]];
        check_limits((bounds[1] - bounds[0]) as u64, cols as u64, entries as u64)?;
        let mut numbers = Vec::with_capacity(entries);
        for r in (bounds[0]..bounds[1]).filter(interior) {
            numbers.extend(col_ind[row(r)].iter().map(|&col| (col - own.start) as u32));
        }
        tile_cols.push(numbers);
    }
    drop(col_ind);

    let mut boundary_values = Vec::with_capacity(entries);
    for &r in &rows {
        boundary_values.extend_from_slice(&values[row(r as usize)]);
    }
    let lengths = rows.iter().map(|&r| row(r as usize).len() as u32);
    let pointers = spm_formats::csr::pointers_of(lengths);
    let a = Arc::new(Csr::new(shape, pointers, boundary_cols, boundary_values)?);
    let boundary = Boundary { rows, a, below, local };
    let mut tiles = Vec::with_capacity(tile_cols.len());
    for (bounds, numbers) in bounds.windows(2).zip(tile_cols) {
        let (rows, first) = (bounds[0]..bounds[1], sums[bounds[0]]);
        let mut tile_values = Vec::with_capacity(numbers.len());
        for r in rows.clone().filter(interior) {
            tile_values.extend_from_slice(&values[row(r)]);
        }
        let ends = &sums[rows.start..=rows.end];
        let pointers = ends.iter().map(|&sum| (sum - first) as u32).collect();
        let a = Csr::new((rows.len(), cols), pointers, numbers, tile_values)?;
        tiles.push(Tile { rows, a: Arc::new(a) });
    }
    Ok((tiles, boundary))
}
