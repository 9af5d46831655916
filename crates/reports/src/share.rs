//! Which node should write which symbol; every node computes the same answer.

use ring::digest::{SHA256, digest};

use super::cache::NodeId;

/// The node that should write a symbol: the one with the highest hash for it. When a node comes or goes, only its own
/// symbols move.
pub fn first_choice<'a>(symbol: &str, nodes: &'a [NodeId]) -> Option<&'a NodeId> {
    nodes.iter().max_by_key(|node| (hash(node, symbol), *node))
}

/// The same in every build and on every machine, unlike the standard library's.
fn hash(node: &NodeId, symbol: &str) -> u64 {
    let text = [node.0.as_bytes(), &[0], symbol.as_bytes()].concat();
    let mut first = [0; 8];
    first.copy_from_slice(&digest(&SHA256, &text).as_ref()[..8]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn nodes(names: &[&str]) -> Vec<NodeId> {
        names.iter().map(|name| NodeId((*name).into())).collect()
    }

    fn choices(nodes: &[NodeId]) -> HashMap<String, NodeId> {
        let symbols = (0..1_000).map(|number| format!("COIN{number}USDT"));
        symbols
            .map(|symbol| {
                let choice = first_choice(&symbol, nodes).expect("nodes").clone();
                (symbol, choice)
            })
            .collect()
    }

    #[test]
    fn symbols_are_shared_about_evenly() {
        let mut shares: HashMap<NodeId, usize> = HashMap::new();
        for choice in choices(&nodes(&["a", "b", "c"])).into_values() {
            *shares.entry(choice).or_default() += 1;
        }
        assert!(shares.values().all(|share| (250..420).contains(share)), "{shares:?}");
        assert_eq!(first_choice("BTCUSDT", &[]), None);
    }

    #[test]
    fn only_symbols_of_a_changed_node_move() {
        let before = choices(&nodes(&["a", "b", "c"]));
        let after = choices(&nodes(&["b", "c"]));
        for (symbol, choice) in &before {
            if *choice.0 != *"a" {
                assert_eq!(&after[symbol], choice, "{symbol} had no reason to move");
            }
        }
        let more = choices(&nodes(&["c", "d", "a", "b"]));
        let moved: Vec<_> = before.iter().filter(|(symbol, choice)| more[*symbol] != **choice).collect();
        assert!((150..350).contains(&moved.len()), "about a quarter: {}", moved.len());
        assert!(moved.iter().all(|(symbol, _)| *more[*symbol].0 == *"d"), "and only to the new one");
    }
}
