//! Deletions that are held, and who is told when they may go.

use std::sync::{Arc, Mutex};

use portolan_core::{ObjectId, ObjectKey, reasons};
use portolan_engine::{DeletionScope, Deletions, Surroundings};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::world::World;

fn asker(name: &str) -> ObjectId {
    ObjectId { kind: "Gadget".to_owned(), key: ObjectKey::namespaced("default", name) }
}

fn scope() -> DeletionScope {
    DeletionScope { id: "default/shop".to_owned(), collection: "names".to_owned(), label: "shop".to_owned() }
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("{number}.example.com")).collect()
}

/// What a user reads off the message.
fn digest(ledgers: &Deletions) -> String {
    let message = ledgers.held("default/shop").pop().unwrap();
    message.rsplit('"').nth(1).unwrap().to_owned()
}

/// A pass runs on one thread while the release is heeded on another. One that comes after the pass was told that its
/// deletion is held, and before that is kept, must not be lost: the next look would be ten minutes later.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_comes_while_a_deletion_is_being_held_is_told_to_who_asked() {
    let world = World::empty().await;
    let ledgers = Deletions::new(&world.context, "the Gadget");
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    ledgers.on_unheld(move |unheld| listener.lock().unwrap().extend(unheld.askers));
    let surroundings = || Surroundings { following: Vec::new(), total: 13 };
    let first = ledgers.ask(asker("many"), &scope(), &names(0..12), surroundings, || {}).await;
    assert_eq!(first.unwrap_err().reason, reasons::DELETION_BUDGET_EXCEEDED);

    let release = || {
        let approving = async { ledgers.approve("default/shop", &digest(&ledgers)).await.unwrap() };
        assert!(block_in_place(|| Handle::current().block_on(approving)));
    };
    let late = ledgers.ask(asker("late"), &scope(), &names(12..13), surroundings, release).await;

    assert_eq!(late.unwrap_err().reason, reasons::DELETION_BUDGET_EXCEEDED, "it was held when it asked");
    assert_eq!(*told.lock().unwrap(), [asker("late"), asker("many")]);
    ledgers.ask(asker("late"), &scope(), &names(12..13), surroundings, || {}).await.unwrap();
}
