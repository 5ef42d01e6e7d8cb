//! The model of this machine over HTTP: how quick it is, and the person's yes and no to its download.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use agent_host::agent_services::LocalModelHost;
use computer::error::{ComputerError, ErrorCode};
use models::{ErrorClass, LocalModel, LocalModelEndpoint, LocalModelStatus, ModelError};
use serde_json::json;
use shared_types::wire::LocalModelLine;

use crate::test_machine::{TestMachine, nothing};

const BYTES: u64 = 5_000_000;

/// A local model of which only the state is real.
struct FakeLocalModel(Mutex<LocalModelStatus>);

impl LocalModel for FakeLocalModel {
    fn endpoint(&self) -> Pin<Box<dyn Future<Output = Result<LocalModelEndpoint, ModelError>> + Send + '_>> {
        Box::pin(async { Err(ModelError::new("local", ErrorClass::Unavailable, "it is not real")) })
    }

    fn status(&self) -> LocalModelStatus {
        self.0.lock().unwrap().clone()
    }
}

impl LocalModelHost for FakeLocalModel {
    fn line(&self) -> LocalModelLine {
        let status = self.status();
        LocalModelLine {
            name: "Small".into(),
            bytes: BYTES,
            downloaded: 0,
            fetching: matches!(status, LocalModelStatus::Fetching { .. }),
            declined: status == LocalModelStatus::Declined,
            ready: status.obstacle().is_none(),
            problem: status.obstacle(),
            failure: None,
            speed: Some((2150, 320)),
        }
    }

    fn fetch(&self) {
        *self.0.lock().unwrap() = LocalModelStatus::Fetching { done: 0, bytes: BYTES };
    }

    fn decline(&self) -> Result<(), ComputerError> {
        let mut status = self.0.lock().unwrap();
        if *status == LocalModelStatus::Idle {
            return Err(ComputerError::new(ErrorCode::Refused, "it is here already"));
        }
        *status = LocalModelStatus::Declined;
        Ok(())
    }

    fn stop(&self) {
        *self.0.lock().unwrap() = LocalModelStatus::Idle;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_download_is_declined_and_had_after_all() {
    let keeper = Arc::new(FakeLocalModel(Mutex::new(LocalModelStatus::Absent { bytes: BYTES })));
    let local = Arc::clone(&keeper);
    let machine = TestMachine::with(|config| config.local_services.local = Some(local)).await;
    let listed = async || machine.get("/api/v1/models").await.json["local"].clone();
    let before = listed().await;
    assert_eq!(
        (&before["declined"], &before["ready"], &before["speed"]),
        (&json!(false), &json!(false), &json!([2150, 320]))
    );
    let answer = machine.post("/api/v1/models/local/decline", nothing()).await;
    assert_eq!((answer.status.as_u16(), &answer.json["declined"]), (200, &json!(true)), "{answer:?}");
    let why = listed().await["obstacle"].as_str().unwrap().to_owned();
    assert!(why.contains("was declined") && why.contains("choir models fetch"), "{why}");
    let answer = machine.post("/api/v1/models/local/fetch", nothing()).await;
    assert_eq!(
        (&answer.json["declined"], &answer.json["fetching"]),
        (&json!(false), &json!(true)),
        "{answer:?}"
    );
    machine.post("/api/v1/models/local/stop", nothing()).await;
    let refused = machine.post("/api/v1/models/local/decline", nothing()).await;
    assert_eq!((refused.status.as_u16(), refused.code()), (422, "refused"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_a_model_of_its_own_has_nothing_to_decline() {
    let machine = TestMachine::new().await;
    let answer = machine.post("/api/v1/models/local/decline", nothing()).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (404, "not_found"));
}
