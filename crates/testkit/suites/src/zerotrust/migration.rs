//! Worlds that an older operator was in: `tests/migration/` → its definitions, its objects, what stands at Cloudflare.
//!
//! Objects are stored under the definitions that they were made for, with the defaults that those wrote into them; then our
//! definitions take their place, as they do in a cluster that is switched over.

use serde_json::{Value, json};

use super::OPERATOR_NAMESPACE;
use crate::world::World;

/// Which older operator it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// The one with tasks.
    WithTasks,
    /// The one with finalizers.
    WithFinalizers,
}

/// What is laid down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What stands, or nearly does: nothing has to be made or deleted at Cloudflare.
    Standing,
    /// Also what was left half done.
    Unfinished,
    /// Of all this, what belongs to these routes.
    Routes(&'static [&'static str]),
}

impl Extent {
    /// Whether something of this name belongs to it, or to no route.
    fn includes(self, name: &str) -> bool {
        let of = |route: &&str| name == *route || name.split(['.', '-']).any(|part| part == *route);
        match self {
            Self::Standing => !HALF_DONE.iter().any(of),
            Self::Unfinished => true,
            Self::Routes(routes) => routes.iter().any(of) || name.contains("theirs"),
        }
    }
}

/// Routes that were left half done.
const HALF_DONE: [&str; 3] = ["lost", "gone", "hanging"];
/// Kinds of which every object belongs to a route.
const OF_ROUTES: [&str; 3] = ["HTTPRoute", "ConfigMap", "CloudflareTask"];

struct MigrationFiles {
    definitions: &'static str,
    objects: &'static str,
    unfinished: &'static str,
    cloudflare: &'static str,
}

macro_rules! files {
    ($folder:literal) => {
        MigrationFiles {
            definitions: include_str!(concat!("../../../../../tests/migration/", $folder, "/definitions.yaml")),
            objects: include_str!(concat!("../../../../../tests/migration/", $folder, "/objects.yaml")),
            unfinished: include_str!(concat!("../../../../../tests/migration/", $folder, "/unfinished.yaml")),
            cloudflare: include_str!(concat!("../../../../../tests/migration/", $folder, "/cloudflare.yaml")),
        }
    };
}

impl Older {
    /// Both.
    pub const ALL: [Self; 2] = [Self::WithTasks, Self::WithFinalizers];

    fn files(self) -> MigrationFiles {
        match self {
            Self::WithTasks => files!("a"),
            Self::WithFinalizers => files!("p"),
        }
    }

    /// All objects that it leaves, in order.
    pub fn objects(self, extent: Extent) -> Vec<Value> {
        let files = self.files();
        let mut objects = documents(files.objects);
        objects.extend(documents(files.unfinished));
        objects.retain(|object| {
            let (kind, name) = (object["kind"].as_str(), object["metadata"]["name"].as_str().unwrap_or_default());
            !kind.is_some_and(|kind| OF_ROUTES.contains(&kind)) || extent.includes(name)
        });
        objects
    }

    /// What stands at Cloudflare.
    pub fn cloudflare(self) -> Value {
        documents(self.files().cloudflare).remove(0)
    }

    /// Client secrets that it left in places where none may stand.
    pub fn canaries(self) -> Vec<&'static str> {
        match self {
            Self::WithTasks => vec!["canary-client-secret-of-api", "canary-client-secret-of-fresh"],
            Self::WithFinalizers => vec!["canary-client-secret-of-p-api"],
        }
    }

    /// Lays everything down in a world whose operator sleeps.
    pub async fn lay_down(self, world: &World, extent: Extent) {
        clear(world).await;
        for definition in documents(self.files().definitions) {
            world.cluster.replace_definition(&definition).await;
        }
        for object in self.objects(extent) {
            lay(world, object).await;
        }
        for definition in world.job().definitions() {
            world.cluster.replace_definition(definition).await;
        }
        // What a worker made without reporting it was made after its task.
        self.seed(world, extent);
    }

    fn seed(self, world: &World, extent: Extent) {
        let (simulator, whole) = (&world.cloudflare.simulator, self.cloudflare());
        simulator.reset();
        simulator.seed(foreign(&whole)).expect("what others have is valid");
        world.cloudflare.keep_seeded();
        simulator.reset();
        let mut whole = whole;
        retain(&mut whole, |name| extent.includes(name));
        simulator.seed(whole).expect("the seed is valid");
    }
}

/// What a world begins with is not what an older operator leaves.
async fn clear(world: &World) {
    world.cluster.delete("CloudflareZeroTrustTenant/default/prod").await;
    world.cluster.delete("Secret/default/cloudflare-api-token").await;
}

/// Makes an object, and its status by itself.
async fn lay(world: &World, mut object: Value) {
    let status = object.as_object_mut().and_then(|fields| fields.remove("status"));
    let id = crate::manifests::id(&object);
    let made = world.cluster.try_create(&object).await;
    let there = matches!(&made, Err(kube::Error::Api(refused)) if refused.code == 409);
    assert!(made.is_ok() || there, "{id}: {:?}", made.err());
    if let Some(status) = status {
        world.cluster.patch_status(&id, &json!({ "status": status })).await;
    }
}

fn documents(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").filter(|document| !document.trim().is_empty());
    documents.map(|document| serde_saphyr::from_str(document).expect("the file is YAML")).collect()
}

/// Keeps of some lists what a test says.
fn retain(seed: &mut Value, keep: impl Fn(&str) -> bool) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = |object: &Value| {
        let names = ["domain", "hostname", "name"].iter().map(|field| text(&object[*field]));
        names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
    };
    let lists = ["/zones/0/records", "/tunnels/0/config/ingress", "/service_tokens", "/access_apps"];
    for list in lists {
        let items = seed.pointer_mut(list).and_then(Value::as_array_mut).expect("the seed has the list");
        items.retain(|item| {
            let name = named(item);
            name.is_empty() || keep(&name)
        });
    }
}

/// What belongs to somebody else.
fn foreign(seed: &Value) -> Value {
    let mut seed = seed.clone();
    retain(&mut seed, |name| name.contains("theirs"));
    seed
}

/// Everything in the cluster as text, but Secrets, whose business secrets are.
pub async fn texts(world: &World) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for kind in ["Event", "ConfigMap", "Lease", "Namespace"].into_iter().chain(world.job().kinds()) {
        let all = world.cluster.list(kind).await;
        texts.extend(all.iter().map(|one| (crate::manifests::id(one), one.to_string())));
    }
    texts
}

/// The states that are there.
pub async fn states(world: &World) -> Vec<Value> {
    let maps = world.cluster.list("ConfigMap").await;
    maps.into_iter()
        .filter(|map| super::canonical::is_state(map) && map["metadata"]["namespace"] == OPERATOR_NAMESPACE)
        .collect()
}
