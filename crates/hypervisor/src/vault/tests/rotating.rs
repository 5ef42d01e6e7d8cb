//! Another master key: all at once, under the eyes of other processes, and cut off at every step by SIGKILL.

use std::process::Command;

use rustix::process::{Signal, getpid, kill_process};

use super::super::rotation::{STEPS, Step};
use super::*;

const FOLDER: &str = "VAULT_TEST_FOLDER";
const DIES_AT: &str = "VAULT_TEST_DIES_AT";

fn next(house: &House) -> std::path::PathBuf {
    house.folder.path().join("master.key.next")
}

#[test]
fn a_rotation_seals_everything_anew_and_the_old_key_opens_nothing() {
    let house = House::filled();
    let old = fs::read_to_string(house.key()).unwrap();
    let beside = house.again();
    assert_all_readable(&beside, &house);
    let before = sealed(&house);
    assert_eq!(house.vault.rotate(&house.owner, None, &caller()).unwrap(), 3);
    assert_ne!(fs::read_to_string(house.key()).unwrap(), old);
    assert!(!next(&house).exists());
    assert_all_readable(&house.vault, &house);
    assert_all_readable(&beside, &house);
    let by_old = house.with(KeySource::Given(old.into()));
    let read = by_old.get(&house.owner.id, &provider("anthropic"));
    assert!(matches!(read, Err(VaultError::Locked(Locked::WrongMaster(_)))), "{read:?}");
    let disk = house.everything_on_disk();
    for (nonce, bytes) in before {
        assert!(!disk.windows(bytes.len()).any(|window| window == bytes), "what the old key opens is gone");
        assert!(!disk.windows(nonce.len()).any(|window| window == nonce));
    }
}

fn sealed(house: &House) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = house.vault.identity.consult(entries::all).unwrap();
    all.into_iter().map(|stored| (stored.sealed.nonce.to_vec(), stored.sealed.bytes)).collect()
}

#[test]
fn a_key_from_outside_is_rotated_to_the_one_that_is_given() {
    let house = House::new();
    let (old, new) = ("12".repeat(32), "34".repeat(32));
    let vault = house.with(KeySource::Given(old.clone().into()));
    let zai = provider("zai");
    vault.set(&house.owner, KeyScope::Own, &zai, &Secret::new(OWNERS.into()), &caller()).unwrap();
    let rotate = |next: Option<&str>| {
        let next = next.map(|text| text.to_owned().into());
        vault.rotate(&house.owner, next.as_ref(), &caller())
    };
    assert!(matches!(rotate(None), Err(VaultError::Locked(Locked::NoNext))));
    assert!(matches!(rotate(Some(&old)), Err(VaultError::Locked(Locked::Same))));
    assert!(matches!(rotate(Some("short")), Err(VaultError::Locked(Locked::NotAKey(_)))));
    assert_eq!(got(&vault, &house.owner, "zai").as_deref(), Some(OWNERS));
    assert_eq!(rotate(Some(&new)).unwrap(), 1);
    assert!(!house.key().exists(), "what comes from outside is not written down");
    let after = house.with(KeySource::Given(new.into()));
    assert_eq!(got(&after, &house.owner, "zai").as_deref(), Some(OWNERS));
}

#[test]
fn a_rotation_that_meets_a_broken_row_changes_nothing() {
    let house = House::filled();
    let old = fs::read(house.key()).unwrap();
    house.sql("UPDATE vault SET sealed = zeroblob(40) WHERE user IS NULL");
    let refused = house.vault.rotate(&house.owner, None, &caller());
    assert!(matches!(refused, Err(VaultError::Damaged { ref provider }) if provider == "zai"), "{refused:?}");
    assert_eq!(fs::read(house.key()).unwrap(), old);
    assert!(!next(&house).exists());
    assert_eq!(got(&house.again(), &house.guest, "anthropic").as_deref(), Some(GUESTS));
}

#[test]
fn an_empty_vault_gets_another_key_too() {
    let house = House::filled();
    for (who, scope, name) in [
        (&house.owner, KeyScope::Own, "anthropic"),
        (&house.guest, KeyScope::Own, "anthropic"),
        (&house.owner, KeyScope::Shared, "zai"),
    ] {
        house.vault.clear(who, scope, &provider(name), &caller()).unwrap();
    }
    let old = fs::read(house.key()).unwrap();
    assert_eq!(house.vault.rotate(&house.owner, None, &caller()).unwrap(), 0);
    assert_ne!(fs::read(house.key()).unwrap(), old);
}

/// Not a test: the process that dies in the middle of a rotation.
#[test]
#[ignore = "started by the test below"]
fn rotates_and_dies() {
    let (Ok(folder), Ok(dies_at)) = (std::env::var(FOLDER), std::env::var(DIES_AT)) else { return };
    let vault = vault_in(folder.as_ref(), KeySource::Folder(folder.clone().into()));
    let owner = vault.identity.users().unwrap().remove(0);
    let die = |step: Step| {
        if format!("{step:?}") == dies_at {
            kill_process(getpid(), Signal::KILL).unwrap();
            loop {
                std::thread::park();
            }
        }
    };
    vault.rotate_by_steps(&owner, None, &caller(), &die).unwrap();
}

fn rotate_and_die(house: &House, step: Step) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "vault::tests::rotating::rotates_and_dies", "--ignored"])
        .env(FOLDER, house.folder.path())
        .env(DIES_AT, format!("{step:?}"))
        .output()
        .unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.status.signal(), Some(9), "{step:?}: {child:?}");
}

#[test]
fn a_crash_at_any_step_of_a_rotation_loses_nothing() {
    for step in STEPS {
        for again in [None, Some(Step::Committed), Some(Step::NextWritten)] {
            let house = House::filled();
            let running = house.again();
            assert_all_readable(&running, &house);
            let old = fs::read(house.key()).unwrap();
            rotate_and_die(&house, step);
            assert_all_readable(&running, &house);
            if let Some(again) = again {
                // Nobody looked in between: the next rotation finds what the last one left.
                rotate_and_die(&house, again);
            }
            // A process that was there all along, and one that starts now.
            assert_all_readable(&running, &house);
            let after = house.again();
            assert_all_readable(&after, &house);
            assert!(!next(&house).exists(), "{step:?}: what was left is settled");
            let rotated = matches!(step, Step::Committed | Step::Settled) || again == Some(Step::Committed);
            assert_eq!(fs::read(house.key()).unwrap() != old, rotated, "{step:?} {again:?}");
            after.rotate(&house.owner, None, &caller()).unwrap();
            assert_all_readable(&house.again(), &house);
        }
    }
}

#[test]
fn a_next_key_that_was_cut_off_while_it_was_written_is_dropped() {
    let house = House::filled();
    for half in ["", "ab12"] {
        fs::write(next(&house), half).unwrap();
        fs::set_permissions(next(&house), fs::Permissions::from_mode(0o600)).unwrap();
        assert_all_readable(&house.again(), &house);
        assert!(!next(&house).exists());
    }
}

#[test]
fn a_next_key_stays_while_it_may_be_the_only_right_one() {
    let house = House::filled();
    rotate_and_die(&house, Step::Committed);
    fs::remove_file(house.key()).unwrap();
    fs::set_permissions(next(&house), fs::Permissions::from_mode(0o644)).unwrap();
    let locked = house.again().get(&house.owner.id, &provider("anthropic"));
    assert!(matches!(locked, Err(VaultError::Locked(_))), "{locked:?}");
    fs::set_permissions(next(&house), fs::Permissions::from_mode(0o600)).unwrap();
    assert_all_readable(&house.again(), &house);
    assert!(house.key().exists() && !next(&house).exists());
}

#[test]
fn two_who_rotate_at_once_and_one_who_reads_all_get_through() {
    let house = House::filled();
    let (one, two, reading) = (house.again(), house.again(), house.again());
    std::thread::scope(|scope| {
        for vault in [&one, &two] {
            scope.spawn(|| {
                for _ in 0..10 {
                    vault.rotate(&house.owner, None, &caller()).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..200 {
                assert_all_readable(&reading, &house);
            }
        });
    });
    assert_all_readable(&house.again(), &house);
}
