//! What goes on by itself when a machine starts again.

use std::sync::Arc;
use std::time::Duration;

use computer::Computer;
use computer::ids;
use computer::paths::ComputerPaths;
use computer::protocol::{Envelope, Request, RunRequest};
use event_log::{EventLog, SqliteLog};
use hypervisor::identity::{ClientInfo, IdentityStore};
use shared_types::payload::run::Budget;
use shared_types::wire::StartRun;
use shared_types::{Seq, Timestamp};

use crate::test_machine::{TestMachine, owner};

#[tokio::test(flavor = "multi_thread")]
async fn a_guests_run_goes_on_before_they_sign_in_again() {
    let mut found = None;
    let _house = TestMachine::with(|config| {
        let data = config.server.data.clone();
        let clock = Arc::new(|| Timestamp::from_millis(1_800_000_000_000));
        let (identity, caller) = (
            IdentityStore::open(&data, clock).unwrap(),
            ClientInfo { address: "192.0.2.7".into(), browser: "test".into() },
        );
        identity.ensure_owner(&owner(), "Ada").unwrap();
        let invitation = identity.invite(&owner(), "Grace", &caller).unwrap();
        let guest = identity.accept(&invitation.secret.reveal(), &caller).unwrap().user.id;
        let home = data.join("users").join(guest.as_str());
        let paths = ComputerPaths { state: home.join(".choir"), workspace: home.join("workspace") };
        std::fs::create_dir_all(&paths.workspace).unwrap();
        let (computer, _) = Computer::create(&paths, guest, "Grace", &|_, _, _| ()).unwrap();
        let start = StartRun {
            command: ids::new_command(),
            run: ids::new_run(),
            objective: "Water the plants.".into(),
            attached: Vec::new(),
            model: None,
            budget: Budget::default(),
        };
        let envelope = Envelope::new(Request::AgentRuns(RunRequest::Start(start)));
        computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()).into_runs().unwrap();
        found = Some((paths, computer.log().head().seq));
    })
    .await;
    let (paths, then) = found.unwrap();
    // There is no model, so going on is to say that.
    let log = SqliteLog::open_read_only(&paths.state).unwrap();
    let names = tokio::task::spawn_blocking(move || {
        let mut seen: Seq = then;
        for _ in 0..60 {
            seen = log.wait(seen, Duration::from_secs(1));
            let mut names = Vec::new();
            log.scan(then.next(), &mut |stored| {
                names.push(stored.name.to_string());
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
            if names.iter().any(|name| name == "run.pause") {
                return names;
            }
        }
        Vec::new()
    });
    assert!(names.await.unwrap().contains(&"task.start".to_owned()));
}
