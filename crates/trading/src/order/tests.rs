//! Orders against the exchange's rules.

use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use tribune_binance::Depth;
use tribune_binance::testing::depth;

fn read(args: Value) -> Result<Order> {
    let args = args.as_object().expect("object").clone();
    Order::read(&crate::spec::arguments(args)?)
}

fn limit(side: &str, price: &str, quantity: &str) -> Order {
    read(json!({"symbol": "SOLUSDT", "side": side, "type": "LIMIT", "price": price, "quantity": quantity}))
        .expect("order")
}

fn rules() -> Symbol {
    let quantity = |text: &str| Some(text.parse::<Quantity>().expect("quantity"));
    let money = |text: &str| Some(text.parse::<Notional>().expect("money"));
    Symbol {
        tick_size: Some("0.01".parse::<Price>().expect("tick")),
        step_size: quantity("0.001"),
        min_quantity: quantity("0.002"),
        max_quantity: quantity("1000"),
        min_notional: money("5"),
        max_notional: money("9000"),
        ..Symbol::named("SOLUSDT", "SOL", "USDT")
    }
}

fn book() -> Depth {
    depth(&[("150.00", "2000")], &[("150.02", "2000")])
}

fn checked(order: &Order) -> Result<()> {
    let estimate = order.estimate(&book())?;
    order.check(&rules(), estimate.notional)
}

#[test]
fn error_names_the_broken_rule() {
    assert!(checked(&limit("BUY", "150.01", "0.034")).is_ok());
    let cases = [
        (limit("BUY", "150.015", "1"), "150.015 is not a multiple of the tick size 0.01"),
        (limit("BUY", "150", "0.0345"), "0.0345 is not a multiple of the step size 0.001"),
        (limit("BUY", "150", "0.001"), "the quantity 0.001 is below the exchange's minimum 0.002"),
        (limit("BUY", "1", "1001"), "above the exchange's maximum 1000"),
        // 150 × 0.033 = 4.95
        (limit("BUY", "150", "0.033"), "value of about 4.95 USDT is below the exchange's minimum 5"),
        // 150 × 60.001 = 9000.15
        (limit("BUY", "150", "60.001"), "value of about 9000.15 USDT is above the exchange's maximum 9000"),
    ];
    for (order, part) in cases {
        let error = checked(&order).expect_err(part);
        assert!(error.message().starts_with("the order was not sent: "), "{error}");
        assert!(error.message().contains(part), "{part}: {error}");
    }
    let halted = Symbol { status: "HALT".into(), ..rules() };
    let order = limit("BUY", "150", "1");
    let estimate = order.estimate(&book()).expect("estimate");
    let error = order.check(&halted, estimate.notional).expect_err("halted");
    assert!(error.message().contains("cannot be traded now (status HALT)"));
    let unread = Symbol {
        min_notional: None,
        unread_rule: Some(Arc::from("`filters[2].minNotional` is not a string")),
        ..rules()
    };
    let error = order.check(&unread, estimate.notional).expect_err("unread");
    assert!(error.message().contains("could not be read (`filters[2].minNotional`"), "{error}");
}

#[test]
fn combinations_beyond_the_schema_are_checked() {
    let base = json!({"symbol": "S", "side": "BUY", "type": "LIMIT"});
    let with = |more: Value| {
        let mut args = base.clone();
        args.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
        read(args).map_err(|error| error.message().to_owned())
    };
    let cases = [
        (json!({}), "needs `price` and `quantity`"),
        (json!({"price": "1"}), "needs `price` and `quantity`"),
        (json!({"price": "1", "quantity": "1", "quote_quantity": "1"}), "no `quote_quantity`"),
        (json!({"price": "0", "quantity": "1"}), "`price` must be more than zero"),
        (json!({"price": "1", "quantity": "1e3"}), "`quantity` is not a decimal number"),
        (json!({"type": "MARKET", "price": "1", "quantity": "1"}), "takes no `price`"),
        (json!({"type": "MARKET", "time_in_force": "IOC", "quantity": "1"}), "no `time_in_force`"),
        (json!({"type": "MARKET"}), "either `quantity` or `quote_quantity`"),
        (json!({"type": "MARKET", "quantity": "1", "quote_quantity": "1"}), "either"),
        (json!({"type": "STOP_LOSS"}), "expected `LIMIT` or `MARKET`"),
        (json!({"side": "HOLD"}), "expected `BUY` or `SELL`"),
    ];
    for (more, part) in cases {
        let error = with(more).expect_err(part);
        assert!(error.contains(part), "{part}: {error}");
    }
}

proptest! {
    #[test]
    fn whole_ticks_and_steps_pass_and_nothing_else(price in 1..100_000_000_000i64, quantity in 1..100_000_000_000i128) {
        let open = Symbol { min_quantity: None, max_quantity: None, min_notional: None, max_notional: None, ..rules() };
        let (price, quantity) = (Price::from_units(price), Quantity::from_units(quantity));
        let order = limit("BUY", &price.to_string(), &quantity.to_string());
        let estimate = order.estimate(&book()).expect("estimate");
        let whole = price.units() % 1_000_000 == 0 && quantity.units() % 100_000 == 0;
        prop_assert_eq!(order.check(&open, estimate.notional).is_ok(), whole);
    }

    #[test]
    fn no_arguments_make_it_panic(price in "[0-9.]{0,30}|\\PC{0,10}", quantity in "[0-9.]{0,30}", kind in "LIMIT|MARKET|\\PC{0,5}") {
        let order = read(json!({"symbol": "S", "side": "SELL", "type": kind, "price": price, "quantity": quantity}));
        if let Ok(order) = order {
            let _ = order.estimate(&book()).and_then(|estimate| order.check(&rules(), estimate.notional));
        }
    }
}
