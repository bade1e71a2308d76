package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

const (
	credentials = "/var/run/secrets/kubernetes.io/serviceaccount/"
	deleted     = "DELETED"
)

// A node is what matters here of a Kubernetes node.
type node struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		PodCIDR string `json:"podCIDR"`
	} `json:"spec"`
	Status struct {
		Addresses []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
	} `json:"status"`
}

func (n node) internalAddress() string {
	for _, one := range n.Status.Addresses {
		if one.Type == "InternalIP" {
			return one.Address
		}
	}
	return ""
}

// A source is the API server's list of nodes.
type source struct {
	server string
	client *http.Client
}

// bearer sends the pod's token, which the kubelet renews.
type bearer struct {
	next http.RoundTripper
}

func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := os.ReadFile(credentials + "token")
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return b.next.RoundTrip(request)
}

// inCluster returns the API server that a pod is told of.
func inCluster(host, port string) (source, error) {
	authority, err := os.ReadFile(credentials + "ca.crt")
	if err != nil {
		return source{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return source{}, errors.New("the service account's ca.crt holds no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	client := &http.Client{Transport: bearer{next: transport}}
	return source{server: "https://" + net.JoinHostPort(host, port), client: client}, nil
}

// watch hands over every node that there is, and then every change, until the API server ends the watch.
func (s source) watch(ctx context.Context, apply func(event string, node node) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server+"/api/v1/nodes?watch=1&timeoutSeconds=300", nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(response.Body, 500))
		return fmt.Errorf("%s: %s", response.Status, said)
	}
	decoder := json.NewDecoder(response.Body)
	for {
		var change struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&change); err != nil {
			return err
		}
		if change.Type == "ERROR" {
			return fmt.Errorf("the API server says %s", change.Object)
		}
		var found node
		if err := json.Unmarshal(change.Object, &found); err != nil {
			return err
		}
		if err := apply(change.Type, found); err != nil {
			return fmt.Errorf("node %s: %w", found.Metadata.Name, err)
		}
	}
}
