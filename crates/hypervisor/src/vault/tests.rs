//! The vault over a real store in a temporary folder: bytes on disk, access control, and wrong or lost master keys.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod rotation;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use super::*;

const OWNER_KEY: &str = "sk-ant-api03-owners-very-own-Xy7Q";
const GUEST_KEY: &str = "sk-ant-api03-guests-very-own-Zz9P";
const SHARED_KEY: &str = "sk-ant-api03-everybodys-key-Rr2S";

/// A folder with a store, its owner and a guest.
struct VaultFixture {
    folder: TempDir,
    vault: Vault,
    owner: User,
    guest: User,
}

fn vault_in(folder: &Path, source: MasterKeySource) -> Vault {
    Vault::open(IdentityStore::open(folder, crate::server::clock()).unwrap(), source)
}

fn client() -> ClientInfo {
    ClientInfo { address: "192.0.2.7".into(), browser: "test".into() }
}

fn provider(name: &str) -> ProviderName {
    ProviderName::parse(name).unwrap()
}

impl VaultFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let vault = vault_in(folder.path(), MasterKeySource::Folder(folder.path().to_owned()));
        let owner = vault.identity.ensure_owner(&UserId::owner(), "Ada").unwrap();
        let invitation = vault.identity.invite(&owner.id, "Grace Hopper", &client()).unwrap();
        let guest = vault.identity.accept(&invitation.secret.reveal(), &client()).unwrap().user;
        Self { folder, vault, owner, guest }
    }

    /// With a key of the owner, one of the guest, and a shared one.
    fn filled() -> Self {
        let fixture = Self::new();
        fixture.set(&fixture.owner, KeyScope::Own, "anthropic", OWNER_KEY).unwrap();
        fixture.set(&fixture.guest, KeyScope::Own, "anthropic", GUEST_KEY).unwrap();
        fixture.set(&fixture.owner, KeyScope::Shared, "zai", SHARED_KEY).unwrap();
        fixture
    }

    fn key_file(&self) -> std::path::PathBuf {
        self.folder.path().join("master.key")
    }

    /// A second vault on the same store, as in another process.
    fn reopen(&self) -> Vault {
        self.open_with(MasterKeySource::Folder(self.folder.path().to_owned()))
    }

    fn open_with(&self, source: MasterKeySource) -> Vault {
        vault_in(self.folder.path(), source)
    }

    fn set(&self, user: &User, scope: KeyScope, name: &str, secret: &str) -> Result<(), VaultError> {
        self.vault.set(user, scope, &provider(name), &ProviderSecret::new(secret.into()), &client())
    }

    fn sql(&self, sql: &str) {
        let changed =
            self.vault.identity.write_transaction::<_, VaultError>(|tx| Ok(tx.execute(sql, [])?)).unwrap();
        assert!(changed > 0, "{sql}");
    }

    fn everything_on_disk(&self) -> Vec<u8> {
        let files = fs::read_dir(self.folder.path()).unwrap();
        files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
    }
}

fn read_key(vault: &Vault, user: &User, name: &str) -> Option<String> {
    vault.get(&user.id, &provider(name)).unwrap().map(|secret| secret.reveal().to_owned())
}

fn assert_all_readable(vault: &Vault, fixture: &VaultFixture) {
    assert_eq!(read_key(vault, &fixture.owner, "anthropic").as_deref(), Some(OWNER_KEY));
    assert_eq!(read_key(vault, &fixture.guest, "anthropic").as_deref(), Some(GUEST_KEY));
    assert_eq!(read_key(vault, &fixture.guest, "zai").as_deref(), Some(SHARED_KEY));
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn no_secret_is_on_disk_in_plain_text() {
    let fixture = VaultFixture::filled();
    assert_all_readable(&fixture.vault, &fixture);
    let wal = fs::metadata(fixture.folder.path().join("hypervisor.sqlite-wal")).unwrap();
    assert!(wal.len() > 0, "the write-ahead log is checked too");
    let disk = fixture.everything_on_disk();
    assert!(contains(&disk, "anthropic"), "the rows are among the bytes");
    for secret in [OWNER_KEY, GUEST_KEY, SHARED_KEY] {
        // Not even the end that is displayed as a hint.
        for part in [secret, &secret[..12], &secret[secret.len() - 8..]] {
            assert!(!contains(&disk, part), "{part}");
        }
    }
}

#[test]
fn a_user_gets_their_own_key_before_the_shared_one_and_never_anothers() {
    let fixture = VaultFixture::filled();
    fixture.set(&fixture.owner, KeyScope::Shared, "anthropic", "sk-shared-anthropic-key").unwrap();
    assert_all_readable(&fixture.vault, &fixture);
    fixture.set(&fixture.owner, KeyScope::Own, "openai", "sk-only-of-the-owner").unwrap();
    assert_eq!(read_key(&fixture.vault, &fixture.guest, "openai"), None);
    fixture.vault.clear(&fixture.guest, KeyScope::Own, &provider("anthropic"), &client()).unwrap();
    assert_eq!(
        read_key(&fixture.vault, &fixture.guest, "anthropic").as_deref(),
        Some("sk-shared-anthropic-key")
    );
    assert_eq!(read_key(&fixture.vault, &fixture.owner, "anthropic").as_deref(), Some(OWNER_KEY));
    let stranger = UserId::parse("stranger").unwrap();
    assert!(fixture.vault.get(&stranger, &provider("openai")).unwrap().is_none());
}

#[test]
fn a_list_has_the_users_own_and_the_shared_keys_and_no_secret() {
    let fixture = VaultFixture::filled();
    let listed = |user: &User| -> Vec<_> {
        let listed = fixture.vault.list(user).unwrap();
        assert!(listed.iter().all(|entry| entry.readable));
        listed.into_iter().map(|entry| (entry.provider, entry.scope, entry.hint)).collect()
    };
    let hint = |text: &str| Some(text.to_owned());
    assert_eq!(
        listed(&fixture.owner),
        [("anthropic".into(), KeyScope::Own, hint("Xy7Q")), ("zai".into(), KeyScope::Shared, hint("Rr2S"))]
    );
    assert_eq!(
        listed(&fixture.guest),
        [("anthropic".into(), KeyScope::Own, hint("Zz9P")), ("zai".into(), KeyScope::Shared, None)]
    );
}

#[test]
fn only_the_owner_changes_shared_keys() {
    let fixture = VaultFixture::filled();
    let (guest, zai) = (&fixture.guest, provider("zai"));
    let refused = fixture.set(guest, KeyScope::Shared, "zai", "sk-of-a-guest-for-everybody");
    assert!(matches!(refused, Err(VaultError::NotOwner)), "{refused:?}");
    let refused = fixture.vault.clear(guest, KeyScope::Shared, &zai, &client());
    assert!(matches!(refused, Err(VaultError::NotOwner)), "{refused:?}");
    assert!(matches!(fixture.vault.rotate(guest, None, &client()), Err(VaultError::NotOwner)));
    assert!(matches!(fixture.vault.clear_unreadable(guest, &client()), Err(VaultError::NotOwner)));
    assert_all_readable(&fixture.vault, &fixture);
    fixture.vault.clear(&fixture.owner, KeyScope::Shared, &zai, &client()).unwrap();
    let again = fixture.vault.clear(&fixture.owner, KeyScope::Shared, &zai, &client());
    assert!(matches!(again, Err(VaultError::Missing)), "{again:?}");
}

#[test]
fn a_row_that_was_moved_to_another_user_or_provider_does_not_open() {
    for moved in [
        "user = 'grace-hopper' WHERE user IS NULL",
        "user = NULL WHERE user = 'grace-hopper'",
        "provider = 'openai' WHERE user = 'owner'",
    ] {
        let fixture = VaultFixture::filled();
        fixture.sql(&format!("UPDATE vault SET {moved}"));
        let (user, name) = match moved.split(' ').next_back() {
            Some("NULL") => (&fixture.guest, "zai"),
            Some("'owner'") => (&fixture.owner, "openai"),
            _ => (&fixture.guest, "anthropic"),
        };
        let read = fixture.vault.get(&user.id, &provider(name));
        assert!(matches!(read, Err(VaultError::Corrupt { .. })), "{moved}: {read:?}");
        assert!(fixture.vault.reader(&user.id).get(name).is_none());
        assert!(fixture.vault.list(user).unwrap().iter().any(|entry| !entry.readable));
    }
    let fixture = VaultFixture::filled();
    fixture.sql(
        "UPDATE vault SET (nonce, sealed) = (SELECT nonce, sealed FROM vault AS other
         WHERE other.user = 'owner') WHERE user = 'grace-hopper'",
    );
    let swapped = fixture.vault.get(&fixture.guest.id, &provider("anthropic"));
    assert!(matches!(swapped, Err(VaultError::Corrupt { .. })), "{swapped:?}");
    assert_eq!(read_key(&fixture.vault, &fixture.owner, "anthropic").as_deref(), Some(OWNER_KEY));
}

#[test]
fn the_master_key_is_made_once_and_for_its_owner_alone() {
    let fixture = VaultFixture::new();
    assert!(fixture.vault.list(&fixture.owner).unwrap().is_empty());
    assert_eq!(read_key(&fixture.vault, &fixture.owner, "anthropic"), None);
    assert!(!fixture.key_file().exists(), "it is not made before it is needed");
    fixture.set(&fixture.owner, KeyScope::Own, "zai", OWNER_KEY).unwrap();
    let made = fs::read(fixture.key_file()).unwrap();
    assert_eq!(fs::metadata(fixture.key_file()).unwrap().permissions().mode() & 0o777, 0o600);
    fixture.set(&fixture.owner, KeyScope::Own, "kimi", OWNER_KEY).unwrap();
    assert_eq!(fs::read(fixture.key_file()).unwrap(), made);
    assert!(!fixture.folder.path().join("master.key.next").exists());
}

#[test]
fn a_master_key_that_others_can_read_is_refused_until_its_mode_is_fixed() {
    let fixture = VaultFixture::filled();
    for mode in [0o644, 0o640, 0o604, 0o660] {
        fs::set_permissions(fixture.key_file(), fs::Permissions::from_mode(mode)).unwrap();
        let vault = fixture.reopen();
        let read = vault.get(&fixture.owner.id, &provider("anthropic"));
        let Err(VaultError::Locked(locked @ MasterKeyError::InsecurePermissions { .. })) = read else {
            panic!("{read:?}")
        };
        assert!(locked.to_string().contains("chmod 600"), "{locked}");
        let written = vault.set(
            &fixture.owner,
            KeyScope::Own,
            &provider("kimi"),
            &ProviderSecret::new("sk-kimi".into()),
            &client(),
        );
        assert!(
            matches!(written, Err(VaultError::Locked(MasterKeyError::InsecurePermissions { .. }))),
            "{written:?}"
        );
        let cleared = vault.clear_unreadable(&fixture.owner, &client());
        assert!(
            matches!(cleared, Err(VaultError::Locked(MasterKeyError::InsecurePermissions { .. }))),
            "{cleared:?}"
        );
    }
    fs::set_permissions(fixture.key_file(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_all_readable(&fixture.reopen(), &fixture);
}

#[test]
fn with_a_wrong_or_lost_master_key_nothing_is_written_or_lost() {
    let fixture = VaultFixture::filled();
    let right = fs::read_to_string(fixture.key_file()).unwrap();
    let lose = || fs::remove_file(fixture.key_file()).unwrap();
    let put = |text: &str| {
        fs::write(fixture.key_file(), text).unwrap();
        fs::set_permissions(fixture.key_file(), fs::Permissions::from_mode(0o600)).unwrap();
    };
    let failure_message = |vault: &Vault| -> String {
        let read = vault.get(&fixture.owner.id, &provider("anthropic")).unwrap_err();
        let new = ProviderSecret::new("sk-a-new-one-of-the-owner".into());
        let set = vault.set(&fixture.owner, KeyScope::Own, &provider("anthropic"), &new, &client());
        let rotated = vault.rotate(&fixture.owner, Some(&"ab".repeat(32).into()), &client());
        assert_eq!(set.unwrap_err().to_string(), read.to_string());
        assert_eq!(rotated.unwrap_err().to_string(), read.to_string());
        assert_eq!(vault.check().unwrap_err().to_string(), read.to_string());
        assert!(vault.reader(&fixture.owner.id).get("anthropic").is_none());
        let listed = vault.list(&fixture.owner).unwrap();
        assert!(listed.len() == 2 && listed.iter().all(|entry| !entry.readable && entry.hint.is_none()));
        read.to_string()
    };
    lose();
    assert!(failure_message(&fixture.reopen()).contains("Restore"), "the message says what to do");
    assert!(!fixture.key_file().exists(), "a new key would hide that the old one is lost");
    put(&"12".repeat(32));
    assert!(failure_message(&fixture.reopen()).contains("Restore the right one"));
    put("nonsense");
    assert!(failure_message(&fixture.reopen()).contains("32 bytes"));
    assert!(
        failure_message(&fixture.open_with(MasterKeySource::Value("12".repeat(32).into())))
            .contains("CHOIR_MASTER_KEY")
    );
    assert!(
        failure_message(&fixture.open_with(MasterKeySource::Value("12".to_owned().into())))
            .contains("CHOIR_MASTER_KEY")
    );
    put(&right);
    assert_all_readable(&fixture.reopen(), &fixture);
    assert_all_readable(&fixture.open_with(MasterKeySource::Value(right.into())), &fixture);
}

#[test]
fn after_a_master_key_is_lost_the_vault_can_be_cleared_and_used_again() {
    let fixture = VaultFixture::filled();
    assert_eq!(fixture.vault.clear_unreadable(&fixture.owner, &client()).unwrap(), 0);
    fs::remove_file(fixture.key_file()).unwrap();
    let vault = fixture.reopen();
    assert_eq!(vault.clear_unreadable(&fixture.owner, &client()).unwrap(), 3);
    let new = ProviderSecret::new("sk-a-new-one-of-the-owner".into());
    vault.set(&fixture.owner, KeyScope::Own, &provider("zai"), &new, &client()).unwrap();
    assert_eq!(read_key(&fixture.reopen(), &fixture.owner, "zai").as_deref(), Some(new.reveal()));
}

#[test]
fn a_reader_sees_the_newest_key_each_time() {
    let fixture = VaultFixture::filled();
    let reader = fixture.vault.reader(&fixture.guest.id);
    let read = || reader.clone().get("anthropic").map(|secret| secret.reveal().to_owned());
    assert_eq!(read().as_deref(), Some(GUEST_KEY));
    let elsewhere = fixture.reopen();
    let new = ProviderSecret::new("sk-set-by-another-process".into());
    elsewhere.set(&fixture.guest, KeyScope::Own, &provider("anthropic"), &new, &client()).unwrap();
    assert_eq!(read().as_deref(), Some(new.reveal()));
    elsewhere.clear(&fixture.guest, KeyScope::Own, &provider("anthropic"), &client()).unwrap();
    assert_eq!(read(), None);
    assert!(reader.get("Not A Name").is_none());
    assert!(!format!("{reader:?} {:?}", reader.get("zai")).contains("sk-"));
}

#[test]
fn the_limit_on_keys_does_not_prevent_replacing_one() {
    let fixture = VaultFixture::new();
    for n in 0..limits::MAX_KEYS {
        fixture.set(&fixture.guest, KeyScope::Own, &format!("p{n}"), "sk-one-of-many").unwrap();
    }
    let full = fixture.set(&fixture.guest, KeyScope::Own, "one-more", "sk-one-of-many");
    assert!(matches!(full, Err(VaultError::LimitReached { .. })), "{full:?}");
    fixture.set(&fixture.guest, KeyScope::Own, "p0", "sk-another").unwrap();
    fixture.set(&fixture.owner, KeyScope::Own, "one-more", "sk-one-of-many").unwrap();
}

#[test]
fn changes_are_in_the_audit_trail_without_the_secret() {
    let fixture = VaultFixture::filled();
    fixture.vault.clear(&fixture.owner, KeyScope::Shared, &provider("zai"), &client()).unwrap();
    fixture.vault.rotate(&fixture.owner, None, &client()).unwrap();
    let lines = fixture.vault.identity.audit(&fixture.owner).unwrap();
    let lines: Vec<_> = lines.iter().map(|line| format!("{} {}", line.what, line.detail)).collect();
    let failure_message =
        ["master_key.rotated 2 sealed anew", "key.cleared zai (shared)", "key.set zai (shared)"];
    assert_eq!(&lines[..3], failure_message);
    assert!(lines.iter().any(|line| line == "key.set anthropic"));
    assert!(!lines.iter().any(|line| line.contains("sk-")));
}

#[test]
fn a_store_of_the_previous_version_gets_its_vault_tables() {
    let fixture = VaultFixture::new();
    let invited = fixture.guest.clone();
    let older = "DROP TABLE vault; DROP TABLE vault_master; PRAGMA user_version = 1;";
    fixture
        .vault
        .identity
        .read_transaction::<_, VaultError>(|connection| {
            connection.execute_batch(&format!("COMMIT; {older} BEGIN;"))?;
            Ok(())
        })
        .unwrap();
    let vault = fixture.reopen();
    vault
        .set(&invited, KeyScope::Own, &provider("zai"), &ProviderSecret::new(GUEST_KEY.into()), &client())
        .unwrap();
    assert_eq!(read_key(&vault, &invited, "zai").as_deref(), Some(GUEST_KEY));
}

#[test]
fn several_processes_can_create_a_store_at_once() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| IdentityStore::open(folder.path(), crate::server::clock()).unwrap());
            }
        });
    }
}
