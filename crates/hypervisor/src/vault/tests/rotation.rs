//! Rotation of the master key: while other processes read, and interrupted by SIGKILL at every step.

use std::process::Command;

use rustix::process::{Signal, getpid, kill_process};

use super::super::rotation::{STEPS, Step};
use super::*;

const FOLDER: &str = "VAULT_TEST_FOLDER";
const DIE_AT: &str = "VAULT_TEST_DIES_AT";

fn next_key_file(fixture: &VaultFixture) -> std::path::PathBuf {
    fixture.folder.path().join("master.key.next")
}

#[test]
fn a_rotation_reseals_every_entry_and_the_old_key_opens_nothing() {
    let fixture = VaultFixture::filled();
    let old = fs::read_to_string(fixture.key_file()).unwrap();
    let other_process = fixture.reopen();
    assert_all_readable(&other_process, &fixture);
    let before = sealed(&fixture);
    assert_eq!(fixture.vault.rotate(&fixture.owner, None, &client()).unwrap(), 3);
    assert_ne!(fs::read_to_string(fixture.key_file()).unwrap(), old);
    assert!(!next_key_file(&fixture).exists());
    assert_all_readable(&fixture.vault, &fixture);
    assert_all_readable(&other_process, &fixture);
    let with_old_key = fixture.open_with(MasterKeySource::Value(old.into()));
    let read = with_old_key.get(&fixture.owner.id, &provider("anthropic"));
    assert!(matches!(read, Err(VaultError::Locked(MasterKeyError::Wrong(_)))), "{read:?}");
    let disk = fixture.everything_on_disk();
    for (nonce, bytes) in before {
        assert!(
            !disk.windows(bytes.len()).any(|window| window == bytes),
            "entries sealed with the old key are gone"
        );
        assert!(!disk.windows(nonce.len()).any(|window| window == nonce));
    }
}

fn sealed(fixture: &VaultFixture) -> Vec<(Vec<u8>, Vec<u8>)> {
    let all = fixture.vault.identity.read_transaction(entries::all).unwrap();
    all.into_iter().map(|stored| (stored.sealed.nonce.to_vec(), stored.sealed.bytes)).collect()
}

#[test]
fn a_key_from_the_environment_is_rotated_to_the_given_one() {
    let fixture = VaultFixture::new();
    let (old, new) = ("12".repeat(32), "34".repeat(32));
    let vault = fixture.open_with(MasterKeySource::Value(old.clone().into()));
    let zai = provider("zai");
    vault
        .set(&fixture.owner, KeyScope::Own, &zai, &ProviderSecret::new(OWNER_KEY.into()), &client())
        .unwrap();
    let rotate = |next: Option<&str>| {
        let next = next.map(|text| text.to_owned().into());
        vault.rotate(&fixture.owner, next.as_ref(), &client())
    };
    assert!(matches!(rotate(None), Err(VaultError::Locked(MasterKeyError::NoNextKey))));
    assert!(matches!(rotate(Some(&old)), Err(VaultError::Locked(MasterKeyError::Unchanged))));
    assert!(matches!(rotate(Some("short")), Err(VaultError::Locked(MasterKeyError::Malformed(_)))));
    assert_eq!(read_key(&vault, &fixture.owner, "zai").as_deref(), Some(OWNER_KEY));
    assert_eq!(rotate(Some(&new)).unwrap(), 1);
    assert!(!fixture.key_file().exists(), "a key from the environment is not written to disk");
    let after = fixture.open_with(MasterKeySource::Value(new.into()));
    assert_eq!(read_key(&after, &fixture.owner, "zai").as_deref(), Some(OWNER_KEY));
}

#[test]
fn a_rotation_that_finds_a_corrupt_row_changes_nothing() {
    let fixture = VaultFixture::filled();
    let old = fs::read(fixture.key_file()).unwrap();
    fixture.sql("UPDATE vault SET sealed = zeroblob(40) WHERE user IS NULL");
    let refused = fixture.vault.rotate(&fixture.owner, None, &client());
    assert!(matches!(refused, Err(VaultError::Corrupt { ref provider }) if provider == "zai"), "{refused:?}");
    assert_eq!(fs::read(fixture.key_file()).unwrap(), old);
    assert!(!next_key_file(&fixture).exists());
    assert_eq!(read_key(&fixture.reopen(), &fixture.guest, "anthropic").as_deref(), Some(GUEST_KEY));
}

#[test]
fn an_empty_vault_can_be_rotated() {
    let fixture = VaultFixture::filled();
    for (who, scope, name) in [
        (&fixture.owner, KeyScope::Own, "anthropic"),
        (&fixture.guest, KeyScope::Own, "anthropic"),
        (&fixture.owner, KeyScope::Shared, "zai"),
    ] {
        fixture.vault.clear(who, scope, &provider(name), &client()).unwrap();
    }
    let old = fs::read(fixture.key_file()).unwrap();
    assert_eq!(fixture.vault.rotate(&fixture.owner, None, &client()).unwrap(), 0);
    assert_ne!(fs::read(fixture.key_file()).unwrap(), old);
}

/// Not a test: the child process that is killed during a rotation.
#[test]
#[ignore = "started by the tests below"]
fn rotate_and_die_in_child() {
    let (Ok(folder), Ok(die_at)) = (std::env::var(FOLDER), std::env::var(DIE_AT)) else { return };
    let vault = vault_in(folder.as_ref(), MasterKeySource::Folder(folder.clone().into()));
    let owner = vault.identity.users().unwrap().remove(0);
    let die = |step: Step| {
        if format!("{step:?}") == die_at {
            kill_process(getpid(), Signal::KILL).unwrap();
            loop {
                std::thread::park();
            }
        }
    };
    vault.rotate_by_steps(&owner, None, &client(), &die).unwrap();
}

fn rotate_and_die(fixture: &VaultFixture, step: Step) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "vault::tests::rotation::rotate_and_die_in_child", "--ignored"])
        .env(FOLDER, fixture.folder.path())
        .env(DIE_AT, format!("{step:?}"))
        .output()
        .unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(child.status.signal(), Some(9), "{step:?}: {child:?}");
}

#[test]
fn a_crash_at_any_step_of_a_rotation_loses_nothing() {
    for step in STEPS {
        for again in [None, Some(Step::Committed), Some(Step::NextWritten)] {
            let fixture = VaultFixture::filled();
            let running = fixture.reopen();
            assert_all_readable(&running, &fixture);
            let old = fs::read(fixture.key_file()).unwrap();
            rotate_and_die(&fixture, step);
            assert_all_readable(&running, &fixture);
            if let Some(again) = again {
                // No process opened the vault in between: the next rotation finds an unfinished one.
                rotate_and_die(&fixture, again);
            }
            // A process that was running all the time, and one that starts now.
            assert_all_readable(&running, &fixture);
            let after = fixture.reopen();
            assert_all_readable(&after, &fixture);
            assert!(!next_key_file(&fixture).exists(), "{step:?}: the rotation is finished");
            let rotated = matches!(step, Step::Committed | Step::Finished) || again == Some(Step::Committed);
            assert_eq!(fs::read(fixture.key_file()).unwrap() != old, rotated, "{step:?} {again:?}");
            after.rotate(&fixture.owner, None, &client()).unwrap();
            assert_all_readable(&fixture.reopen(), &fixture);
        }
    }
}

#[test]
fn a_next_key_that_was_written_partially_is_deleted() {
    let fixture = VaultFixture::filled();
    for half in ["", "ab12"] {
        fs::write(next_key_file(&fixture), half).unwrap();
        fs::set_permissions(next_key_file(&fixture), fs::Permissions::from_mode(0o600)).unwrap();
        assert_all_readable(&fixture.reopen(), &fixture);
        assert!(!next_key_file(&fixture).exists());
    }
}

#[test]
fn a_next_key_is_kept_while_it_may_be_the_only_right_one() {
    let fixture = VaultFixture::filled();
    rotate_and_die(&fixture, Step::Committed);
    fs::remove_file(fixture.key_file()).unwrap();
    fs::set_permissions(next_key_file(&fixture), fs::Permissions::from_mode(0o644)).unwrap();
    let locked = fixture.reopen().get(&fixture.owner.id, &provider("anthropic"));
    assert!(matches!(locked, Err(VaultError::Locked(_))), "{locked:?}");
    fs::set_permissions(next_key_file(&fixture), fs::Permissions::from_mode(0o600)).unwrap();
    assert_all_readable(&fixture.reopen(), &fixture);
    assert!(fixture.key_file().exists() && !next_key_file(&fixture).exists());
}

#[test]
fn two_concurrent_rotations_and_a_reader_all_succeed() {
    let fixture = VaultFixture::filled();
    let (one, two, reading) = (fixture.reopen(), fixture.reopen(), fixture.reopen());
    std::thread::scope(|scope| {
        for vault in [&one, &two] {
            scope.spawn(|| {
                for _ in 0..10 {
                    vault.rotate(&fixture.owner, None, &client()).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..200 {
                assert_all_readable(&reading, &fixture);
            }
        });
    });
    assert_all_readable(&fixture.reopen(), &fixture);
}
