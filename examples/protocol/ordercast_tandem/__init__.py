"""An ordering protocol that is not built into Ordercast: a fixed sequencer per domain, with a stand-by."""
