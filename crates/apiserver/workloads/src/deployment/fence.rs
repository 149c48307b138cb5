//! How many pods there may be, and how many may be missing, while a deployment rolls.

use serde_json::Value;

use crate::common::object::number;

enum Round {
    Up,
    Down,
}

/// A number, or a percentage of `total`.
fn scaled(value: &Value, total: i64, round: Round) -> i64 {
    let Some(text) = value.as_str() else {
        return value.as_i64().unwrap_or(0);
    };
    let percent: i64 = text.strip_suffix('%').and_then(|digits| digits.parse().ok()).unwrap_or(0);
    match round {
        Round::Up => (total * percent + 99) / 100,
        Round::Down => total * percent / 100,
    }
}

pub(super) fn is_rolling(deployment: &Value) -> bool {
    deployment["spec"]["strategy"]["type"] == "RollingUpdate"
}

/// Pods above the wanted number.
pub(super) fn max_surge(deployment: &Value) -> i64 {
    let replicas = number(deployment, "/spec/replicas");
    if is_rolling(deployment) {
        scaled(&deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"], replicas, Round::Up)
    } else {
        0
    }
}

/// Pods below the wanted number; where neither more nor fewer were allowed nothing could ever move.
pub(super) fn max_unavailable(deployment: &Value) -> i64 {
    let replicas = number(deployment, "/spec/replicas");
    if !is_rolling(deployment) || replicas == 0 {
        return 0;
    }
    let asked = scaled(&deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], replicas, Round::Down);
    let least = i64::from(max_surge(deployment) == 0);
    asked.max(least).min(replicas)
}

/// The wanted number and the surge.
pub(super) fn most_replicas(deployment: &Value) -> i64 {
    number(deployment, "/spec/replicas") + max_surge(deployment)
}

/// What must stay available.
pub(super) fn min_available(deployment: &Value) -> i64 {
    number(deployment, "/spec/replicas") - max_unavailable(deployment)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fences(replicas: i64, surge: Value, unavailable: Value) -> (i64, i64) {
        let rolling = json!({"maxSurge": surge, "maxUnavailable": unavailable});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        let deployment = json!({"spec": {"replicas": replicas, "strategy": strategy}});
        (max_surge(&deployment), max_unavailable(&deployment))
    }

    #[test]
    fn surge_is_rounded_up_and_unavailability_down() {
        assert_eq!(fences(10, json!("25%"), json!("25%")), (3, 2));
        assert_eq!(fences(1, json!("25%"), json!("25%")), (1, 0));
        assert_eq!(fences(10, json!(2), json!(5)), (2, 5));
    }

    #[test]
    fn one_pod_may_always_be_missing_where_none_may_be_added() {
        assert_eq!(fences(10, json!(0), json!("1%")), (0, 1));
        assert_eq!(fences(2, json!(0), json!(5)), (0, 2));
    }
}
