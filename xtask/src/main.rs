//! See the library of the same name.

fn main() -> anyhow::Result<()> {
    xtask::run()
}
