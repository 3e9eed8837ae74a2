//! A gateway hangs, or is killed, and its standby serves its nodes with the budgets that they had; when it is back, they return.

use crate::link::GATEWAY;
use crate::scene::{DIVIDED, HOSTS, PART, Scene, WEIGHTS, send};
use nix::sys::signal::Signal;
use penstock_linux::testing::{PATIENCE, wait_until};
use std::time::{Duration, Instant};

/// Follows all hosts until each has its budget from the gateway at `port`; returns for how long the one that was without
/// a budget for longest was so.
fn without_budget(scene: &Scene, port: usize) -> Duration {
    let (begin, mut since, mut worst) = (Instant::now(), [None; HOSTS], Duration::ZERO);
    loop {
        let mut there = 0;
        for host in 0..HOSTS {
            let (asked, status) = (Instant::now(), scene.ask_agent(host));
            if status["budget_bps"].is_null() {
                let first = *since[host].get_or_insert(asked);
                worst = worst.max(Instant::now() - first);
                continue;
            }
            since[host] = None;
            let budget = status["budget_bps"].as_f64() == Some(PART * WEIGHTS[host] as f64);
            there += usize::from(budget && status["gateway"] == format!("10.90.{host}.1:{port}"));
        }
        if there == HOSTS {
            return worst;
        }
        assert!(begin.elapsed() < PATIENCE, "not all hosts have their budgets from port {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_standby_takes_over_before_budgets_end_and_gives_them_back() {
    let Some(mut scene) = Scene::new("8Mbit/s") else { return };
    scene.write(DIVIDED);
    let standby = DIVIDED.replace("\"c2ml\"", "\"copy\"") + "standby = \"127.0.0.1:7443\"\nlisten = \"0.0.0.0:7444\"\n";
    scene.write_named("standby.toml", "b", &standby);
    let gateway = scene.gateway();
    scene.standby = true;
    scene.join(PART, "");
    // The standby has the keys and the nodes of the first one.
    scene.sh("g", "cp -a c2ml copy");
    scene.start("g", &format!("{GATEWAY} run standby.toml"));
    let serves = |scene: &Scene| scene.ask_named("b", "status").and_then(|status| status["c2ml"]["serves"].as_bool());
    wait_until("the standby waits", || serves(&scene) == Some(false));

    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        send(gateway, signal);
        let without = without_budget(&scene, 7444);
        eprintln!("after {signal} no host was without a budget for longer than {without:?}");
        assert!(without < Duration::from_secs(2), "{without:?}");
        wait_until("the standby gives all", || {
            let status = scene.ask_named("b", "status");
            status.is_some_and(|status| status["c2ml"]["granted_bps"].as_f64() == Some(8.0 * PART))
        });

        if signal == Signal::SIGSTOP {
            send(gateway, Signal::SIGCONT);
        } else {
            scene.gateway();
        }
        let without = without_budget(&scene, 7443);
        eprintln!("when it was back, no host was without a budget for longer than {without:?}");
        assert!(without < Duration::from_secs(5), "{without:?}: a lease and a grace period");
    }
    wait_until("the standby waits again", || serves(&scene) == Some(false));
    scene.end_link();
}
