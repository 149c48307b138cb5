//! Commands that the documentation shows and that run somewhere else: each with where.

/// Where a command is run.
#[derive(Clone, Copy, Debug)]
pub enum Where {
    /// `make test` runs it, or is it.
    Tier,
    /// A test in this file runs it: the name of the test.
    Test(&'static str),
    /// Nobody but people: why.
    ByHand(&'static str),
}

/// Why nobody types the rescue of a lost credential here.
const RESCUE: &str = "needs a credential that was lost; a test of the controllers names another one in the same way";

/// The beginnings of commands, and where they are run.
const TABLE: &[(&str, Where)] = &[
    ("make test", Where::Tier),
    ("make lint", Where::Tier),
    ("make controlplane", Where::Tier),
    ("cargo test", Where::Tier),
    ("PORTOLAN_PARITY_FILTER=", Where::Tier),
    ("PORTOLAN_DOCS_FILTER=", Where::Tier),
    ("PORTOLAN_SEED=", Where::Tier),
    ("PORTOLAN_RECORD_DIR=", Where::Tier),
    ("scripts/regressions --check", Where::Tier),
    ("scripts/test --self-check", Where::Tier),
    ("scripts/test --only", Where::Tier),
    ("scripts/test --repeat", Where::ByHand("takes an hour, and wants a machine of its own")),
    ("scripts/regressions", Where::ByHand("builds a copy of the tree for each patch; `make soak` runs it")),
    ("make demo", Where::Test("the_demo_ends_with_a_name_that_is_live_and_protected")),
    ("cargo build --release -p portolan", Where::ByHand("takes ten minutes; the tests build the same in debug")),
    ("cargo install --path crates/portolan", Where::ByHand("takes ten minutes; the tests build the same in debug")),
    ("make bench", Where::ByHand("measures, and wants a machine of its own")),
    ("portolan bench", Where::ByHand("measures, and wants a machine of its own")),
    ("docker build", Where::ByHand("no container engine is expected; a test reads the Dockerfile")),
    ("make soak", Where::ByHand("takes hours; what it found is in docs/reliability.md")),
    ("make generate", Where::ByHand("`make lint` runs it with --check")),
    ("make chart", Where::ByHand("`make lint` runs it with --check")),
    ("docker build", Where::ByHand("needs a builder of images; what can be said without one is tested in image.rs")),
    ("make reference", Where::ByHand("`make lint` runs it with --check")),
    ("kubectl -n cloudflare-zero-trust create secret generic rescue", Where::ByHand(RESCUE)),
    ("kubectl -n cloudflare-zero-trust annotate configmap cfzt-shop-web", Where::ByHand(RESCUE)),
    ("scripts/lay-down-former", Where::ByHand("needs a binary of a former release; a test takes over what it made")),
    ("sudo setcap cap_net_admin", Where::ByHand("needs root; a runner without it is tested by the runner's own tests")),
    ("scripts/controlplane", Where::ByHand("`make bench` runs it")),
    ("kubectl --kubeconfig /tmp/real/kubeconfig", Where::ByHand("against what scripts/controlplane started")),
];

/// Where a command is run that is not run here.
pub fn place(command: &str) -> Option<Where> {
    TABLE.iter().find(|(beginning, _)| command.starts_with(beginning)).map(|(_, place)| *place)
}

/// What only people run: the beginning of the command, and why.
pub fn by_hand() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().filter_map(|(beginning, place)| match place {
        Where::ByHand(why) => Some((*beginning, *why)),
        Where::Tier | Where::Test(_) => None,
    })
}

/// Names of the tests in the table, to be looked for.
pub fn tests() -> impl Iterator<Item = &'static str> {
    TABLE.iter().filter_map(|(_, place)| match place {
        Where::Test(name) => Some(*name),
        Where::Tier | Where::ByHand(_) => None,
    })
}
