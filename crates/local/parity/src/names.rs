//! Names that keep runs apart on a server that is used more than once.

use rand::seq::IndexedRandom as _;

/// Four random consonants: no digits, which kubectl's output has as ages and versions.
pub(crate) fn run_name() -> String {
    let mut random = rand::rng();
    (0..4).map(|_| char::from(*b"bcfgjklnpqrtvwxz".choose(&mut random).expect("there are letters"))).collect()
}
