//! The vault over a real store in a folder of its own: what lies on the disk, who gets what, and what a wrong key
//! does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod rotating;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::*;

const OWNERS: &str = "sk-ant-api03-owners-very-own-Xy7Q";
const GUESTS: &str = "sk-ant-api03-guests-very-own-Zz9P";
const SHARED: &str = "sk-ant-api03-everybodys-key-Rr2S";

/// A folder with a store, its owner and a guest.
struct House {
    folder: TempDir,
    vault: Vault,
    owner: User,
    guest: User,
}

fn vault_in(folder: &Path, source: KeySource) -> Vault {
    Vault::open(Identity::open(folder, crate::server::clock()).unwrap(), source)
}

fn caller() -> Caller {
    Caller { address: "192.0.2.7".into(), browser: "test".into() }
}

fn provider(name: &str) -> Provider {
    Provider::parse(name).unwrap()
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault_in(folder.path(), KeySource::Folder(folder.path().to_owned()));
        let owner = vault.identity.ensure_owner(&UserId::owner(), "Ada").unwrap();
        let invitation = vault.identity.invite(&owner.id, "Grace Hopper", &caller()).unwrap();
        let guest = vault.identity.accept(&invitation.secret.reveal(), &caller()).unwrap().user;
        Self { folder, vault, owner, guest }
    }

    /// With a key of the owner's, one of the guest's and one for everybody.
    fn filled() -> Self {
        let house = Self::new();
        house.set(&house.owner, KeyScope::Own, "anthropic", OWNERS).unwrap();
        house.set(&house.guest, KeyScope::Own, "anthropic", GUESTS).unwrap();
        house.set(&house.owner, KeyScope::Shared, "zai", SHARED).unwrap();
        house
    }

    fn key(&self) -> std::path::PathBuf {
        self.folder.path().join("master.key")
    }

    /// As another process would have it.
    fn again(&self) -> Vault {
        self.with(KeySource::Folder(self.folder.path().to_owned()))
    }

    fn with(&self, source: KeySource) -> Vault {
        vault_in(self.folder.path(), source)
    }

    fn set(&self, who: &User, scope: KeyScope, name: &str, secret: &str) -> Result<(), VaultError> {
        self.vault.set(who, scope, &provider(name), &Secret::new(secret.into()), &caller())
    }

    fn sql(&self, sql: &str) {
        let changed = self.vault.identity.transact::<_, VaultError>(|tx| Ok(tx.execute(sql, [])?)).unwrap();
        assert!(changed > 0, "{sql}");
    }

    fn everything_on_disk(&self) -> Vec<u8> {
        let files = fs::read_dir(self.folder.path()).unwrap();
        files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
    }
}

fn got(vault: &Vault, who: &User, name: &str) -> Option<String> {
    vault.get(&who.id, &provider(name)).unwrap().map(|secret| secret.reveal().to_owned())
}

fn assert_all_readable(vault: &Vault, house: &House) {
    assert_eq!(got(vault, &house.owner, "anthropic").as_deref(), Some(OWNERS));
    assert_eq!(got(vault, &house.guest, "anthropic").as_deref(), Some(GUESTS));
    assert_eq!(got(vault, &house.guest, "zai").as_deref(), Some(SHARED));
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn no_secret_is_on_the_disk_in_the_clear() {
    let house = House::filled();
    assert_all_readable(&house.vault, &house);
    let wal = fs::metadata(house.folder.path().join("hypervisor.sqlite-wal")).unwrap();
    assert!(wal.len() > 0, "the write-ahead log is looked at too");
    let disk = house.everything_on_disk();
    assert!(holds(&disk, "anthropic"), "the rows are among the bytes");
    for secret in [OWNERS, GUESTS, SHARED] {
        // Not even the end that is shown as a hint.
        for part in [secret, &secret[..12], &secret[secret.len() - 8..]] {
            assert!(!holds(&disk, part), "{part}");
        }
    }
}

#[test]
fn a_user_gets_their_own_key_before_the_shared_one_and_never_anothers() {
    let house = House::filled();
    house.set(&house.owner, KeyScope::Shared, "anthropic", "sk-shared-anthropic-key").unwrap();
    assert_all_readable(&house.vault, &house);
    house.set(&house.owner, KeyScope::Own, "openai", "sk-only-of-the-owner").unwrap();
    assert_eq!(got(&house.vault, &house.guest, "openai"), None);
    house.vault.clear(&house.guest, KeyScope::Own, &provider("anthropic"), &caller()).unwrap();
    assert_eq!(got(&house.vault, &house.guest, "anthropic").as_deref(), Some("sk-shared-anthropic-key"));
    assert_eq!(got(&house.vault, &house.owner, "anthropic").as_deref(), Some(OWNERS));
    let nobody = UserId::parse("nobody").unwrap();
    assert!(house.vault.get(&nobody, &provider("openai")).unwrap().is_none());
}

#[test]
fn a_list_has_ones_own_and_the_shared_keys_and_no_secret() {
    let house = House::filled();
    let listed = |who: &User| -> Vec<_> {
        let listed = house.vault.list(who).unwrap();
        assert!(listed.iter().all(|entry| entry.readable));
        listed.into_iter().map(|entry| (entry.provider, entry.scope, entry.hint)).collect()
    };
    let hint = |text: &str| Some(text.to_owned());
    assert_eq!(
        listed(&house.owner),
        [("anthropic".into(), KeyScope::Own, hint("Xy7Q")), ("zai".into(), KeyScope::Shared, hint("Rr2S"))]
    );
    assert_eq!(
        listed(&house.guest),
        [("anthropic".into(), KeyScope::Own, hint("Zz9P")), ("zai".into(), KeyScope::Shared, None)]
    );
}

#[test]
fn only_the_owner_touches_what_is_shared() {
    let house = House::filled();
    let (guest, zai) = (&house.guest, provider("zai"));
    let refused = house.set(guest, KeyScope::Shared, "zai", "sk-of-a-guest-for-everybody");
    assert!(matches!(refused, Err(VaultError::NotOwner)), "{refused:?}");
    let refused = house.vault.clear(guest, KeyScope::Shared, &zai, &caller());
    assert!(matches!(refused, Err(VaultError::NotOwner)), "{refused:?}");
    assert!(matches!(house.vault.rotate(guest, None, &caller()), Err(VaultError::NotOwner)));
    assert!(matches!(house.vault.clear_unreadable(guest, &caller()), Err(VaultError::NotOwner)));
    assert_all_readable(&house.vault, &house);
    house.vault.clear(&house.owner, KeyScope::Shared, &zai, &caller()).unwrap();
    let again = house.vault.clear(&house.owner, KeyScope::Shared, &zai, &caller());
    assert!(matches!(again, Err(VaultError::Missing)), "{again:?}");
}

#[test]
fn a_row_that_was_moved_to_another_place_does_not_open() {
    for moved in [
        "user = 'grace-hopper' WHERE user IS NULL",
        "user = NULL WHERE user = 'grace-hopper'",
        "provider = 'openai' WHERE user = 'owner'",
    ] {
        let house = House::filled();
        house.sql(&format!("UPDATE vault SET {moved}"));
        let (who, name) = match moved.split(' ').next_back() {
            Some("NULL") => (&house.guest, "zai"),
            Some("'owner'") => (&house.owner, "openai"),
            _ => (&house.guest, "anthropic"),
        };
        let read = house.vault.get(&who.id, &provider(name));
        assert!(matches!(read, Err(VaultError::Damaged { .. })), "{moved}: {read:?}");
        assert!(house.vault.reader(&who.id).get(name).is_none());
        assert!(house.vault.list(who).unwrap().iter().any(|entry| !entry.readable));
    }
    let house = House::filled();
    house.sql(
        "UPDATE vault SET (nonce, sealed) = (SELECT nonce, sealed FROM vault AS other
         WHERE other.user = 'owner') WHERE user = 'grace-hopper'",
    );
    let swapped = house.vault.get(&house.guest.id, &provider("anthropic"));
    assert!(matches!(swapped, Err(VaultError::Damaged { .. })), "{swapped:?}");
    assert_eq!(got(&house.vault, &house.owner, "anthropic").as_deref(), Some(OWNERS));
}

#[test]
fn the_master_key_is_made_once_and_for_its_owner_alone() {
    let house = House::new();
    assert!(house.vault.list(&house.owner).unwrap().is_empty());
    assert_eq!(got(&house.vault, &house.owner, "anthropic"), None);
    assert!(!house.key().exists(), "it is not made before it is needed");
    house.set(&house.owner, KeyScope::Own, "zai", OWNERS).unwrap();
    let made = fs::read(house.key()).unwrap();
    assert_eq!(fs::metadata(house.key()).unwrap().permissions().mode() & 0o777, 0o600);
    house.set(&house.owner, KeyScope::Own, "kimi", OWNERS).unwrap();
    assert_eq!(fs::read(house.key()).unwrap(), made);
    assert!(!house.folder.path().join("master.key.next").exists());
}

#[test]
fn a_master_key_that_others_can_read_is_refused_until_it_is_mended() {
    let house = House::filled();
    for mode in [0o644, 0o640, 0o604, 0o660] {
        fs::set_permissions(house.key(), fs::Permissions::from_mode(mode)).unwrap();
        let vault = house.again();
        let read = vault.get(&house.owner.id, &provider("anthropic"));
        let Err(VaultError::Locked(locked @ Locked::Exposed { .. })) = read else { panic!("{read:?}") };
        assert!(locked.to_string().contains("chmod 600"), "{locked}");
        let written = vault.set(
            &house.owner,
            KeyScope::Own,
            &provider("kimi"),
            &Secret::new("sk-kimi".into()),
            &caller(),
        );
        assert!(matches!(written, Err(VaultError::Locked(Locked::Exposed { .. }))), "{written:?}");
        let cleared = vault.clear_unreadable(&house.owner, &caller());
        assert!(matches!(cleared, Err(VaultError::Locked(Locked::Exposed { .. }))), "{cleared:?}");
    }
    fs::set_permissions(house.key(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_all_readable(&house.again(), &house);
}

#[test]
fn with_a_wrong_or_lost_master_key_nothing_is_written_and_nothing_lost() {
    let house = House::filled();
    let right = fs::read_to_string(house.key()).unwrap();
    let lose = || fs::remove_file(house.key()).unwrap();
    let put = |text: &str| {
        fs::write(house.key(), text).unwrap();
        fs::set_permissions(house.key(), fs::Permissions::from_mode(0o600)).unwrap();
    };
    let told = |vault: &Vault| -> String {
        let read = vault.get(&house.owner.id, &provider("anthropic")).unwrap_err();
        let new = Secret::new("sk-a-new-one-of-the-owner".into());
        let set = vault.set(&house.owner, KeyScope::Own, &provider("anthropic"), &new, &caller());
        let rotated = vault.rotate(&house.owner, Some(&"ab".repeat(32).into()), &caller());
        assert_eq!(set.unwrap_err().to_string(), read.to_string());
        assert_eq!(rotated.unwrap_err().to_string(), read.to_string());
        assert_eq!(vault.check().unwrap_err().to_string(), read.to_string());
        assert!(vault.reader(&house.owner.id).get("anthropic").is_none());
        let listed = vault.list(&house.owner).unwrap();
        assert!(listed.len() == 2 && listed.iter().all(|entry| !entry.readable && entry.hint.is_none()));
        read.to_string()
    };
    lose();
    assert!(told(&house.again()).contains("Put"), "it says what to do");
    assert!(!house.key().exists(), "a new one would hide that the old one is lost");
    put(&"12".repeat(32));
    assert!(told(&house.again()).contains("Put the right one back"));
    put("nonsense");
    assert!(told(&house.again()).contains("32 bytes"));
    assert!(told(&house.with(KeySource::Given("12".repeat(32).into()))).contains("CHOIR_MASTER_KEY"));
    assert!(told(&house.with(KeySource::Given("12".to_owned().into()))).contains("CHOIR_MASTER_KEY"));
    put(&right);
    assert_all_readable(&house.again(), &house);
    assert_all_readable(&house.with(KeySource::Given(right.into())), &house);
}

#[test]
fn after_a_master_key_is_lost_for_good_one_can_begin_again() {
    let house = House::filled();
    assert_eq!(house.vault.clear_unreadable(&house.owner, &caller()).unwrap(), 0);
    fs::remove_file(house.key()).unwrap();
    let vault = house.again();
    assert_eq!(vault.clear_unreadable(&house.owner, &caller()).unwrap(), 3);
    let new = Secret::new("sk-a-new-one-of-the-owner".into());
    vault.set(&house.owner, KeyScope::Own, &provider("zai"), &new, &caller()).unwrap();
    assert_eq!(got(&house.again(), &house.owner, "zai").as_deref(), Some(new.reveal()));
}

#[test]
fn a_reader_sees_the_newest_key_each_time() {
    let house = House::filled();
    let reader = house.vault.reader(&house.guest.id);
    let read = || reader.clone().get("anthropic").map(|secret| secret.reveal().to_owned());
    assert_eq!(read().as_deref(), Some(GUESTS));
    let elsewhere = house.again();
    let new = Secret::new("sk-set-by-another-process".into());
    elsewhere.set(&house.guest, KeyScope::Own, &provider("anthropic"), &new, &caller()).unwrap();
    assert_eq!(read().as_deref(), Some(new.reveal()));
    elsewhere.clear(&house.guest, KeyScope::Own, &provider("anthropic"), &caller()).unwrap();
    assert_eq!(read(), None);
    assert!(reader.get("Not A Name").is_none());
    assert!(!format!("{reader:?} {:?}", reader.get("zai")).contains("sk-"));
}

#[test]
fn there_is_a_limit_that_does_not_stand_in_the_way_of_a_new_secret() {
    let house = House::new();
    for n in 0..spans::KEYS {
        house.set(&house.guest, KeyScope::Own, &format!("p{n}"), "sk-one-of-many").unwrap();
    }
    let full = house.set(&house.guest, KeyScope::Own, "one-more", "sk-one-of-many");
    assert!(matches!(full, Err(VaultError::Full { .. })), "{full:?}");
    house.set(&house.guest, KeyScope::Own, "p0", "sk-another").unwrap();
    house.set(&house.owner, KeyScope::Own, "one-more", "sk-one-of-many").unwrap();
}

#[test]
fn what_was_done_is_in_the_audit_trail_without_the_secret() {
    let house = House::filled();
    house.vault.clear(&house.owner, KeyScope::Shared, &provider("zai"), &caller()).unwrap();
    house.vault.rotate(&house.owner, None, &caller()).unwrap();
    let lines = house.vault.identity.audit(&house.owner).unwrap();
    let lines: Vec<_> = lines.iter().map(|line| format!("{} {}", line.what, line.detail)).collect();
    let told = ["master_key.rotated 2 sealed anew", "key.cleared zai (shared)", "key.set zai (shared)"];
    assert_eq!(&lines[..3], told);
    assert!(lines.iter().any(|line| line == "key.set anthropic"));
    assert!(!lines.iter().any(|line| line.contains("sk-")));
}

#[test]
fn a_store_of_the_version_before_gets_its_vault() {
    let house = House::new();
    let invited = house.guest.clone();
    let older = "DROP TABLE vault; DROP TABLE vault_master; PRAGMA user_version = 1;";
    house
        .vault
        .identity
        .consult::<_, VaultError>(|connection| {
            connection.execute_batch(&format!("COMMIT; {older} BEGIN;"))?;
            Ok(())
        })
        .unwrap();
    let vault = house.again();
    vault.set(&invited, KeyScope::Own, &provider("zai"), &Secret::new(GUESTS.into()), &caller()).unwrap();
    assert_eq!(got(&vault, &invited, "zai").as_deref(), Some(GUESTS));
}

#[test]
fn a_command_and_a_server_may_both_be_the_first_to_open_a_store() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| Identity::open(folder.path(), crate::server::clock()).unwrap());
            }
        });
    }
}
