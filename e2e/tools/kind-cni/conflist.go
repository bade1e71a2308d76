package main

import (
	"encoding/json"
	"net/netip"
)

// conflist returns the configuration of a node's CNI plugins.
//
// The range of addresses is the node's, its mask is that of all pods: the plugin ptp masquerades what leaves the
// mask, so pods see the addresses of pods on other nodes.
func conflist(network, podNetwork string) ([]byte, error) {
	all, err := netip.ParsePrefix(network)
	if err != nil {
		return nil, err
	}
	own, err := netip.ParsePrefix(podNetwork)
	if err != nil {
		return nil, err
	}
	gateway := own.Masked().Addr().Next()
	ipam := map[string]any{
		"type":    "host-local",
		"dataDir": "/run/cni-ipam-state",
		"routes":  []any{map[string]any{"dst": "0.0.0.0/0"}},
		"ranges": []any{[]any{map[string]any{
			"subnet":     all.Masked().String(),
			"rangeStart": gateway.Next().String(),
			"rangeEnd":   last(own).Prev().String(),
			"gateway":    gateway.String(),
		}}},
	}
	plugins := []any{
		map[string]any{"type": "ptp", "ipMasq": true, "ipam": ipam},
		map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
	}
	return json.MarshalIndent(map[string]any{"cniVersion": "1.0.0", "name": "kind", "plugins": plugins}, "", "  ")
}

// last returns the last address of a network.
func last(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}
