// Karpenter-crds prints the CustomResourceDefinitions of the Karpenter that go.mod pins, and of its KWOK provider.
package main

import (
	"encoding/json"
	"log"
	"os"
	"slices"

	kwok "sigs.k8s.io/karpenter/kwok/apis"
	"sigs.k8s.io/karpenter/pkg/apis"
)

func main() {
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": slices.Concat(apis.CRDs, kwok.CRDs)}
	if err := json.NewEncoder(os.Stdout).Encode(list); err != nil {
		log.Fatal(err)
	}
}
