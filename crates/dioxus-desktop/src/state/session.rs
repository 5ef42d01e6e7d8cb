//! The end of a session.

use super::AppState;
use crate::api::{self, Method};
use crate::dom;

impl AppState {
    /// Ends this session and shows the sign-in screen.
    pub(crate) fn sign_out(self) {
        api::run(async move {
            match api::send_json(Method::Post, "/auth/logout", &api::Empty {}).await {
                Ok(()) => {
                    dom::forget_drafts();
                    if let Some(window) = dom::window() {
                        let _ = window.location().reload();
                    }
                }
                Err(failure) => self.report_failure(&failure),
            }
        });
    }
}
