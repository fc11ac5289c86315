//! The wide suite: generated matrices over the structures of large collections, split into a half to
//! tune on and a half to check on. Figures are quoted on the checking half.

use std::str::FromStr;

use spm_testing::generate::{self, GenerateError, Spec, Values};

use crate::recipe::Recipe;

/// Which matrices of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Those that may be profiled and tuned on.
    Tuning,
    /// Those that figures are quoted on; nothing is tuned on them.
    Checking,
    /// Both halves.
    All,
}

impl FromStr for Half {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "tuning" => Ok(Self::Tuning),
            "checking" => Ok(Self::Checking),
            "all" => Ok(Self::All),
            _ => Err(format!("{name:?} is none of tuning, checking and all")),
        }
    }
}

/// A matrix of the suite.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Structure and sizes, without values.
    pub label: &'static str,
    /// About how many entries it has.
    pub entries: u64,
}

impl Entry {
    /// Tuning or checking, by a hash of the label. The bit was chosen before anything was measured,
    /// so that the halves are alike in size and structures.
    pub fn half(&self) -> Half {
        if generate::seed_of(self.label) >> 16 & 1 == 0 { Half::Tuning } else { Half::Checking }
    }

    /// Structure with values, by another part of the hash. Of 236 collected matrices with more than
    /// 2,000 entries 20 % have equal values, 17 % at most 2^8 distinct ones, 14 % at most 2^16, and
    /// 1 % are otherwise exact in single precision. Half of the others are symmetric where the
    /// pattern is.
    ///
    /// # Errors
    /// A label that is no structure class.
    pub fn recipe(&self) -> Result<Recipe, GenerateError> {
        let hash = generate::seed_of(self.label);
        let spec: Spec = generate::named(self.label)?;
        let values = match hash >> 21 & 0xffff_ffff {
            draw if draw % 100 < 20 => Values::Ones,
            draw if draw % 100 < 37 => Values::Few,
            draw if draw % 100 < 51 => Values::Many,
            draw if draw % 100 < 52 => Values::Single,
            _ if hash >> 60 & 1 == 1 && spec.class().is_symmetric() => Values::Symmetric,
            _ => Values::General,
        };
        Ok(Recipe::Class(spec.with_values(values)?))
    }
}

/// The matrices of a half with at most about `max_entries` entries, small ones first.
pub fn suite(half: Half, max_entries: Option<u64>) -> Vec<Recipe> {
    let mut chosen: Vec<Entry> = SUITE
        .iter()
        .map(|&(entries, label)| Entry { label, entries })
        .filter(|entry| half == Half::All || entry.half() == half)
        .filter(|entry| max_entries.is_none_or(|most| entry.entries <= most))
        .collect();
    chosen.sort_by_key(|entry| entry.entries);
    let recipes = chosen.iter().map(Entry::recipe);
    recipes.map(|recipe| recipe.expect("the suite is covered by a test")).collect()
}

/// About how many entries, and the structure with its sizes.
const SUITE: &[(u64, &str)] = &[
    // Unstructured meshes.
    (1_100, "mesh2[n=13]"),
    (25_000, "mesh2[n=60,order=rcm]"),
    (280_000, "mesh2[n=200]"),
    (1_100_000, "mesh2[n=400,order=random]"),
    (4_500_000, "mesh2[n=800,order=rcm]"),
    (10_900_000, "mesh2[n=1250]"),
    (10_000_000, "mesh2[n=1200,order=random]"),
    (13_000, "mesh3[n=10]"),
    (390_000, "mesh3[n=30,order=rcm]"),
    (1_850_000, "mesh3[n=50]"),
    (3_200_000, "mesh3[n=60,order=random]"),
    (15_000_000, "mesh3[n=100,order=rcm]"),
    (10_800_000, "mesh3[n=90]"),
    // Several unknowns a node: elasticity, shells, flow.
    (24_000, "mesh2[n=30,unknowns=2]"),
    (2_500_000, "mesh2[n=100,order=rcm,unknowns=6]"),
    (8_100_000, "mesh2[n=180,unknowns=6]"),
    (510_000, "mesh3[n=16,unknowns=3]"),
    (2_000_000, "mesh3[n=25,order=rcm,unknowns=3]"),
    (8_400_000, "mesh3[n=40,unknowns=3]"),
    (6_200_000, "mesh3[n=30,order=rcm,unknowns=4]"),
    (7_900_000, "mesh3[n=28,order=random,unknowns=5]"),
    (22_000_000, "mesh3[n=55,order=rcm,unknowns=3]"),
    (380_000, "blocks[n=8,block=6]"),
    (10_900_000, "stencil7[n=40,unknowns=5]"),
    // Stencils, whole, with holes, and masked.
    (14_000, "masked5[n=64,holes=30]"),
    (740_000, "masked5[n=500,holes=40]"),
    (12_900_000, "masked5[n=2000,holes=35]"),
    (1_200_000, "masked7[n=64,holes=30]"),
    (9_000_000, "masked7[n=140,holes=50]"),
    (590_000, "stencil9[n=300,drop=30]"),
    (3_500_000, "stencil27[n=60,drop=40]"),
    (26_500_000, "stencil27[n=100]"),
    (12_000_000, "stencil7[n=120,order=random]"),
    (5_000_000, "stencil5[n=1000]"),
    // Bands.
    (21_000, "banded[n=1000,lower=20,upper=20,drop=50]"),
    (950_000, "banded[n=50000,lower=30,upper=30,drop=70]"),
    (10_000_000, "banded[n=400000,lower=60,upper=60,drop=80]"),
    (2_100_000, "banded[n=200000,lower=3,upper=9,drop=20]"),
    (9_000, "banded[n=3000,lower=1,upper=1]"),
    (6_000_000, "banded[n=2000000,lower=1,upper=1]"),
    // Power networks, circuits, roads.
    (3_500, "power[n=1000,extra=300]"),
    (74_000, "power[n=20000,extra=8000]"),
    (1_100_000, "power[n=300000,extra=120000]"),
    (580_000, "power[n=40000,extra=15000,unknowns=2]"),
    (9_100_000, "power[n=2500000,extra=900000]"),
    (12_000, "circuit[n=2000,entries=12000,dense=1,longest=1200]"),
    (400_000, "circuit[n=60000,entries=400000,dense=3,longest=30000]"),
    (3_000_000, "circuit[n=500000,entries=3000000,dense=5,longest=200000]"),
    (9_000_000, "circuit[n=1500000,entries=9000000,dense=2,longest=900000]"),
    (11_200, "road[n=4000,edges=5600]"),
    (2_800_000, "road[n=1000000,edges=1400000]"),
    // Saddle points and linear programs, wide and tall, with long rows among short ones.
    (11_000, "kkt[n=30,constraints=500]"),
    (580_000, "kkt[n=200,constraints=30000]"),
    (10_900_000, "kkt[n=900,constraints=500000]"),
    (12_000, "lp[rows=600,cols=3000,entries=12000,dense=2,longest=800]"),
    (400_000, "lp[rows=20000,cols=90000,entries=400000,dense=5,longest=9000]"),
    (4_000_000, "lp[rows=1000,cols=1000000,entries=4000000,dense=10,longest=100000]"),
    (3_000_000, "lp[rows=400000,cols=30000,entries=3000000,dense=20,longest=25000]"),
    (12_000_000, "lp[rows=1500000,cols=400000,entries=12000000,dense=6,longest=150000]"),
    (7_000_000, "lp[rows=300000,cols=1500000,entries=7000000,dense=8,longest=100000]"),
    (2_600_000, "lp[rows=200000,cols=400000,entries=2600000,dense=12,longest=100000]"),
    (7_000_000, "lp[rows=1200000,cols=1200000,entries=7000000,dense=6,longest=300000]"),
    // Ratings, both sides skewed.
    (60_000, "ratings[rows=3000,cols=500,entries=60000,longest=400]"),
    (3_000_000, "ratings[rows=60000,cols=4000,entries=3000000,longest=2500]"),
    (20_000_000, "ratings[rows=400000,cols=20000,entries=20000000,longest=12000]"),
    (8_000_000, "ratings[rows=20000,cols=300000,entries=8000000,longest=60000]"),
    // The web and other graphs.
    (40_000, "hosts[n=5000,entries=40000,longest=300]"),
    (2_000_000, "hosts[n=200000,entries=2000000,longest=4000]"),
    (12_000_000, "hosts[n=1000000,entries=12000000,longest=10000]"),
    (20_000_000, "hosts[n=600000,entries=20000000,longest=20000]"),
    (3_100_000, "powerlaw[rows=1000000,cols=1000000,entries=3100000,longest=4700]"),
    (7_000, "rmat[scale=10,edges=8000]"),
    (900_000, "rmat[scale=16,edges=1000000]"),
    (7_800_000, "rmat[scale=20,edges=8000000]"),
    (350_000, "rmat-symmetric[scale=14,edges=200000]"),
    (7_500_000, "rmat-symmetric[scale=18,edges=4000000]"),
    (23_500_000, "rmat-symmetric[scale=21,edges=12000000,order=random]"),
    // Chemistry: hundreds of entries a row.
    (200_000, "atoms[n=7,reach=6,drop=30,unknowns=4]"),
    (4_500_000, "atoms[n=14,reach=6,drop=30,unknowns=6]"),
    (11_000_000, "atoms[n=20,reach=9,drop=40,unknowns=5]"),
    (2_000_000, "atoms[n=30,reach=12,drop=50]"),
    // Markov chains, whose neighbours lie far.
    (1_500, "markov[states=6,queues=3]"),
    (230_000, "markov[states=12,queues=4]"),
    (15_900_000, "markov[states=10,queues=6]"),
    (7_000_000, "markov[states=14,queues=5,order=random]"),
    (6_000_000, "markov[states=1000,queues=2]"),
    // Dense blocks and arrows.
    (26_000, "blockdiagonal[n=2000,size=10]"),
    (4_800_000, "blockdiagonal[n=300000,size=12]"),
    (8_000_000, "blockdiagonal[n=60000,size=100]"),
    (25_000, "arrow[n=5000,width=2]"),
    (7_000_000, "arrow[n=1000000,width=3]"),
    // Hypersparse: most rows empty; and entries anywhere.
    (2_000, "uniform[rows=100000,cols=100000,entries=2000]"),
    (200_000, "uniform[rows=3000000,cols=3000000,entries=200000]"),
    (2_500_000, "uniform[rows=5000000,cols=1000000,entries=2500000]"),
    (9_000_000, "uniform[rows=300000,cols=300000,entries=9000000]"),
    (200_000, "uniform[rows=2000,cols=2000,entries=200000]"),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn values(recipe: &Recipe) -> Values {
        match recipe {
            Recipe::Class(spec) => spec.values(),
            Recipe::Analogue(_) => unreachable!("the suite has structure classes only"),
        }
    }

    #[test]
    fn the_suite_is_wide_and_halves_are_alike() {
        let all = suite(Half::All, None);
        assert!(all.len() >= 80);
        let labels: HashSet<String> = all.iter().map(Recipe::label).collect();
        assert_eq!(labels.len(), all.len());
        let (tuning, checking) = (suite(Half::Tuning, None), suite(Half::Checking, None));
        assert_eq!(tuning.len() + checking.len(), all.len());
        for half in [tuning, checking] {
            assert!(half.len() * 5 >= all.len() * 2, "{}", half.len());
            let share = |of: &[Values]| {
                let count = half.iter().filter(|recipe| of.contains(&values(recipe))).count();
                count as f64 / half.len() as f64
            };
            assert!((0.08..0.35).contains(&share(&[Values::Ones])));
            assert!((0.08..0.30).contains(&share(&[Values::Few])));
            assert!((0.05..0.28).contains(&share(&[Values::Many])));
            assert!((0.30..0.65).contains(&share(&[Values::General, Values::Symmetric])));
        }
        let small = suite(Half::All, Some(30_000));
        assert!(small.len() > 10 && small.len() < all.len());
    }

    #[test]
    fn sizes_are_about_as_stated() {
        for &(entries, label) in SUITE.iter().filter(|&&(entries, _)| entries < 500_000) {
            let recipe = Entry { label, entries }.recipe().unwrap();
            let found = recipe.generate::<f32>().unwrap().nnz() as f64;
            let ratio = found / entries as f64;
            assert!((0.8..1.25).contains(&ratio), "{label}: {found} entries, stated {entries}");
        }
    }
}
