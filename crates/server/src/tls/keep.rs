//! Looking again and again whether the files of certificates have changed.

use std::{convert::Infallible, sync::Arc, time::Duration};

use super::{counters::Of, from_files::Looked};
use crate::app::App;

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Takes up what certificate files hold when they change, until it is dropped.
pub(crate) async fn keep_tls(app: Arc<App>) -> Infallible {
    if app.tls.is_none() && app.forwarding.as_ref().is_none_or(|forwarding| !forwarding.way.is_by_file()) {
        return std::future::pending().await;
    }
    loop {
        app.timer.sleep(app.entropy.jittered(LOOK_EVERY)).await;
        let looking = Arc::clone(&app);
        // A mount may be slow to answer. What a look meets is noted by the look.
        let _ = tokio::task::spawn_blocking(move || look(&looking)).await;
    }
}

fn look(app: &App) {
    if let Some(tls) = &app.tls {
        note(app, Of::Listener, &tls.look());
        app.metrics.tls.ends(tls.not_after());
    }
    if let Some(looked) = app.forwarding.as_ref().and_then(|forwarding| forwarding.way.look()) {
        note(app, Of::Peers, &looked);
    }
}

fn note(app: &App, of: Of, looked: &Looked) {
    let what = of.as_str();
    match looked {
        Looked::Same | Looked::Changing => {}
        Looked::Taken => {
            app.metrics.tls.done(of);
            tracing::info!(what, "changed certificates are in use from now on");
        }
        Looked::Refused { error, is_news } => {
            app.metrics.tls.failed(of);
            if *is_news {
                tracing::error!(what, %error, "changed certificates cannot be used: the ones before stay in use until that is mended");
            }
        }
    }
}
