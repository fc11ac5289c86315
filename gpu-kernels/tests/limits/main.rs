//! Indices beyond 2^31: a launch over billions of rows or entries, of which the last blocks run. The
//! arrays hold what those blocks may touch, at addresses that lie as far back as what comes before
//! would take: an index that wraps, or loses its upper bits, is an access out of bounds, and an
//! addition that overflows a panic.

mod convert;
mod segments;
mod sellp;
mod spmm;
mod spmv;
mod tail;
mod transpose;
