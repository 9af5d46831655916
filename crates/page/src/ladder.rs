//! The best levels of an order book as a table: asks above, bids below, the best prices next to each other.

use crate::model::{Ladder, Rung};

use crate::Element;
use crate::chart::{Slot, empty_panel};
use crate::figures::amount;
use crate::number::grouped;
use crate::table::{bar, scrolled};

pub fn ladder(shown: &Ladder, slot: Slot<'_>) -> Element {
    if shown.bids.is_empty() && shown.asks.is_empty() {
        return empty_panel("The book has no levels.");
    }
    let named = format!("panel-{}-title", slot.key);
    let heads = [("Price", &shown.price_unit), ("Quantity", &shown.quantity_unit), ("Total", &shown.quantity_unit)];
    let heads = heads.map(|(name, unit)| {
        let head = Element::classed("th", "number").with("scope", "col").text(name);
        if unit.is_empty() {
            return head;
        }
        head.text(" ").child(Element::classed("span", "unit").text(unit.clone()))
    });
    let table = Element::classed("table", "ladder")
        .with("aria-labelledby", named.clone())
        .child(Element::new("thead").child(Element::new("tr").children(heads)))
        .child(side("asks", "Asks", shown.asks.iter().rev()))
        .child(spread(shown))
        .child(side("bids", "Bids", shown.bids.iter()));
    scrolled(table, named)
}

fn side<'a>(class: &'static str, name: &'static str, rungs: impl Iterator<Item = &'a Rung>) -> Element {
    let title = Element::new("th").with("colspan", "3").with("scope", "rowgroup").text(name);
    Element::classed("tbody", class).child(Element::classed("tr", "side-name").child(title)).children(rungs.map(rung))
}

fn rung(rung: &Rung) -> Element {
    let cell = |text: &str| Element::classed("td", "number").text(grouped(text));
    let price = Element::classed("th", "number price").with("scope", "row").text(grouped(&rung.price));
    let total = Element::classed("td", "number barred")
        .child(bar(rung.share))
        .child(Element::new("span").text(grouped(&rung.total)));
    Element::new("tr").child(price).child(cell(&rung.quantity)).child(total)
}

fn spread(shown: &Ladder) -> Element {
    let name = Element::classed("th", "number").with("scope", "row").text("Spread");
    let value = Element::classed("td", "number").with("colspan", "2");
    let value = match &shown.spread {
        Some(spread) => value.children(amount(spread)),
        None => value.text("unknown"),
    };
    Element::classed("tbody", "spread").child(Element::new("tr").child(name).child(value))
}

#[cfg(test)]
mod tests {
    use crate::model::Width;

    use super::*;

    #[test]
    fn best_prices_are_next_to_spread() {
        let rung = |price: &str| Rung { price: price.to_owned(), share: 0.25, ..Rung::default() };
        let shown = Ladder {
            bids: vec![rung("1099"), rung("1098")],
            asks: vec![rung("1101"), rung("1102")],
            ..Ladder::default()
        };
        let slot = Slot { key: "ladder", width: Width::Half };
        let html = ladder(&shown, slot).to_string();
        let places = ["1,102", "1,101", "Spread", "1,099", "1,098"].map(|text| html.find(text));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{html}");
        assert!(html.contains("<rect width=\"25%\""), "{html}");
    }
}
