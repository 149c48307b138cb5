//! What an object refers to → what that means: objects by what their controllers know of them, names by a listing.

use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use portolan_cloudflare_api::{
    ApiError, Client, Freshness, Item, Lane, Scope as RemoteScope, TypedCollection, collections,
};
use portolan_core::{AccountId, Class, ObjectKey, Problem, reasons};
use portolan_engine::Handle;

use crate::credentials::CredentialAccess;
use crate::job::JobContext;
use crate::kind::{Kind, Needs};
use crate::projection::Projection;
use crate::reference::{IDENTITY_PROVIDER, NamedBy, RemoteReference, RemoteTarget, RemoteTargets, remote, waiting};

/// So long it is believed what something at Cloudflare is called, and so long that nothing is called so.
const LISTED: Duration = Duration::from_hours(1);
const LISTED_ANEW: Duration = Duration::from_secs(10);
/// So long the first list of what is referred to is waited for.
const LONGEST_LIST: Duration = Duration::from_secs(10);

/// Something at Cloudflare that objects can refer to, a row each: what a kind of the job stands for, and [`UNSERVED`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Referent {
    /// The kind of the objects that stand for it.
    pub(crate) kind: &'static str,
    /// How users call it.
    noun: &'static str,
    look: Look,
}

/// Finds what is named so in an account.
type Look = for<'a> fn(&'a Client, &'a str, &'a NamedBy, Freshness) -> BoxFuture<'a, Result<Vec<String>, ApiError>>;

/// What can be referred to, and what this release has no kind for yet.
pub(crate) const UNSERVED: &[Referent] = &[Referent {
    kind: IDENTITY_PROVIDER,
    noun: "identity provider",
    look: |client, account, by, age| listed(client, &collections::IDENTITY_PROVIDERS, account, by, age).boxed(),
}];

impl Referent {
    /// What objects of a kind stand for.
    pub(crate) fn of<K: Kind>() -> Self {
        Self {
            kind: K::KIND,
            noun: K::NOUN,
            look: |client, account, by, age| listed(client, K::REMOTE, account, by, age).boxed(),
        }
    }

    /// What is called so in an account, or is its default: there must be one.
    pub(crate) async fn find(
        self,
        reference: &RemoteReference,
        client: &Client,
        account: &str,
        age: Freshness,
    ) -> Result<RemoteTarget, Problem> {
        let doing = format!("looking for the {} of {} in account {account}", self.noun, reference.field);
        let found = (self.look)(client, account, &reference.by, age).await.map_err(|error| error.problem(&doing))?;
        let (noun, field) = (self.noun, reference.field);
        let what = match &reference.by {
            NamedBy::RemoteName(name) => format!("{noun} named {name}"),
            NamedBy::Default | NamedBy::Object(_) | NamedBy::Id(_) => format!("default {noun}"),
        };
        match found.as_slice() {
            [id] => RemoteTarget::read(reference, id, None),
            [] => Err(waiting(format!("account {account} has no {what}; create it, or correct {field}"))),
            several => Err(Problem::invalid(
                reasons::INVALID_CONFIG,
                format!("account {account} has {} of the {what}; say {field}.cloudflareId", several.len()),
            )),
        }
    }
}

/// The ids of what is called so, or is the default, in a listing that is not older.
async fn listed<B: Item>(
    client: &Client,
    collection: &'static TypedCollection<B>,
    account: &str,
    by: &NamedBy,
    age: Freshness,
) -> Result<Vec<String>, ApiError> {
    debug_assert_eq!(collection.scope, RemoteScope::Account, "what is referred to by name belongs to an account");
    let remote = client.records(collection, account);
    remote.refresh(Lane::Change, age).await?;
    let is_meant = |item: &B| match by {
        NamedBy::RemoteName(name) => item.natural_key() == *name,
        NamedBy::Default => item.is_default(),
        NamedBy::Object(_) | NamedBy::Id(_) => false,
    };
    Ok(remote.with(|all| all.iter().filter(|entry| is_meant(&entry.item)).map(|entry| entry.id.clone()).collect()))
}

impl JobContext {
    /// What everything means that an object refers to at Cloudflare, but for its zone.
    pub(crate) async fn targets(
        &self,
        needs: &Needs,
        access: &CredentialAccess,
        account: Option<&AccountId>,
    ) -> Result<RemoteTargets, Problem> {
        let mut targets = RemoteTargets::default();
        for reference in remote(&needs.refers) {
            targets.0.insert(reference.clone(), self.target(reference, access, account).await?);
        }
        Ok(targets)
    }

    /// What a reference means.
    async fn target(
        &self,
        reference: &RemoteReference,
        access: &CredentialAccess,
        account: Option<&AccountId>,
    ) -> Result<RemoteTarget, Problem> {
        let Some((referent, known)) = self.triggers.referent(reference.kind) else {
            return Err(waiting(format!("{reference} is of no kind that can be referred to")));
        };
        match (&reference.by, known) {
            (NamedBy::Id(id), _) => RemoteTarget::read(reference, id, None),
            (NamedBy::Object(key), Some(known)) => own_target(reference, key, &known).await,
            (NamedBy::Object(_), None) => Err(waiting(format!(
                "{reference} does not exist, and this release has no such kind: name it by {field}.cloudflareName or \
                 {field}.cloudflareId",
                field = reference.field
            ))),
            (NamedBy::RemoteName(_) | NamedBy::Default, _) => {
                let account = account.ok_or_else(|| {
                    let message = "the account is not known: say spec.cloudflare.accountId";
                    Problem::invalid(reasons::INVALID_CONFIG, message)
                })?;
                let find = |age| referent.find(reference, &access.client, account.as_str(), age);
                // What there is, and what it is called, changes rarely: what is not known yet is looked for anew.
                match find(Freshness::Within(LISTED)).await {
                    Err(missing) if missing.class == Class::Waiting => find(Freshness::Within(LISTED_ANEW)).await,
                    found => found,
                }
            }
        }
    }
}

/// What an object stands for, by its status.
async fn own_target(
    reference: &RemoteReference,
    key: &ObjectKey,
    known: &Handle<Projection>,
) -> Result<RemoteTarget, Problem> {
    // Before the first list is complete, what is not there says nothing.
    if tokio::time::timeout(LONGEST_LIST, known.listed()).await.is_err() {
        return Err(waiting(format!("the objects of kind {} cannot be listed yet", reference.kind)));
    }
    known.read(|store| {
        let object = store
            .get(key)
            .ok_or_else(|| waiting(format!("{reference} does not exist; create it, or correct {}", reference.field)))?;
        match object.projection.as_ref().map(Projection::target) {
            Some((Some(id), name)) => RemoteTarget::read(reference, id, name),
            Some((None, _)) | None => Err(waiting(format!("{reference} has no id yet; its own conditions say why"))),
        }
    })
}
