package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

type recorded struct {
	routes map[string]string
	files  map[string]string
}

func (r recorded) set(podNetwork, via string) error {
	r.routes[podNetwork] = via
	return nil
}

func (r recorded) remove(podNetwork string) error {
	delete(r.routes, podNetwork)
	return nil
}

func newAgent() (agent, recorded) {
	made := recorded{routes: map[string]string{}, files: map[string]string{}}
	write := func(path string, data []byte) error {
		made.files[path] = string(data)
		return nil
	}
	return agent{self: "a", network: "10.244.0.0/16", table: made, write: write}, made
}

func named(name, podNetwork, address string) node {
	var found node
	text := fmt.Sprintf(`{"metadata": {"name": %q}, "spec": {"podCIDR": %q},
		"status": {"addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": %q}]}}`,
		name, podNetwork, address)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		panic(err)
	}
	return found
}

func apply(t *testing.T, agent agent, event string, node node) {
	t.Helper()
	if err := agent.apply(event, node); err != nil {
		t.Fatal(err)
	}
}

func TestOtherNodesGetARouteAndTheOwnNodeAConfiguration(t *testing.T) {
	agent, made := newAgent()
	apply(t, agent, "ADDED", named("a", "10.244.1.0/24", "172.18.0.2"))
	apply(t, agent, "ADDED", named("b", "10.244.2.0/24", "172.18.0.3"))
	if want := map[string]string{"10.244.2.0/24": "172.18.0.3"}; !reflect.DeepEqual(made.routes, want) {
		t.Errorf("routes %v, want %v", made.routes, want)
	}
	if _, written := made.files[configFile]; !written {
		t.Error("the node's own configuration was not written")
	}
}

func TestARouteFollowsItsNodesAddressAndGoesWithTheNode(t *testing.T) {
	agent, made := newAgent()
	apply(t, agent, "ADDED", named("b", "10.244.2.0/24", "172.18.0.3"))
	apply(t, agent, "MODIFIED", named("b", "10.244.2.0/24", "172.18.0.9"))
	if made.routes["10.244.2.0/24"] != "172.18.0.9" {
		t.Errorf("routes %v", made.routes)
	}
	apply(t, agent, deleted, named("b", "10.244.2.0/24", "172.18.0.9"))
	if len(made.routes) != 0 {
		t.Errorf("routes %v after the node was deleted", made.routes)
	}
}

func TestANodeWithoutPodAddressesIsLeftForLater(t *testing.T) {
	agent, made := newAgent()
	apply(t, agent, "ADDED", named("a", "", "172.18.0.2"))
	apply(t, agent, "ADDED", named("b", "", "172.18.0.3"))
	apply(t, agent, "ADDED", named("c", "10.244.3.0/24", ""))
	if len(made.routes)+len(made.files) != 0 {
		t.Errorf("routes %v and files %v", made.routes, made.files)
	}
}

func TestPodsHaveTheNodesAddressesAndTheMaskOfAllPods(t *testing.T) {
	data, err := conflist("10.244.0.0/16", "10.244.2.0/24")
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Plugins []struct {
			Type   string
			IPMasq bool
			IPAM   struct{ Ranges [][]map[string]string }
		}
	}
	if err := json.Unmarshal(data, &found); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"subnet": "10.244.0.0/16", "gateway": "10.244.2.1", "rangeStart": "10.244.2.2", "rangeEnd": "10.244.2.254",
	}
	ptp := found.Plugins[0]
	if ptp.Type != "ptp" || !ptp.IPMasq || !reflect.DeepEqual(ptp.IPAM.Ranges[0][0], want) {
		t.Errorf("%+v, want the range %v", ptp, want)
	}
}

func TestTheWatchHandsOverEveryChangeUntilItEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/nodes" || r.URL.Query().Get("watch") != "1" {
			t.Errorf("%s was requested", r.URL)
		}
		io.WriteString(w, `{"type": "ADDED", "object": {"metadata": {"name": "a"}}}`+"\n")
		io.WriteString(w, `{"type": "DELETED", "object": {"metadata": {"name": "b"}}}`+"\n")
	}))
	defer server.Close()
	var seen []string
	err := source{server: server.URL, client: server.Client()}.watch(context.Background(), func(event string, node node) error {
		seen = append(seen, event+" "+node.Metadata.Name)
		return nil
	})
	if want := []string{"ADDED a", "DELETED b"}; err != io.EOF || !reflect.DeepEqual(seen, want) {
		t.Errorf("saw %v and the error %v", seen, err)
	}
}

func TestARefusalOfTheAPIServerIsSaid(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such right", http.StatusForbidden)
	}))
	defer server.Close()
	err := source{server: server.URL, client: server.Client()}.watch(context.Background(), nil)
	if err == nil || err.Error() != "403 Forbidden: no such right\n" {
		t.Errorf("the error %v", err)
	}
}

func TestAFileIsReplacedWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	for _, text := range []string{"first", "second"} {
		if err := writeWhole(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if found, _ := os.ReadFile(path); string(found) != text {
			t.Errorf("found %q, want %q", found, text)
		}
	}
}
