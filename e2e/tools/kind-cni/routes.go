package main

import (
	"errors"
	"net"
	"syscall"

	"github.com/vishvananda/netlink"
)

// kernelRoutes are the routes of the network namespace that this process runs in.
type kernelRoutes struct{}

func (kernelRoutes) set(podNetwork, via string) error {
	_, destination, err := net.ParseCIDR(podNetwork)
	if err != nil {
		return err
	}
	return netlink.RouteReplace(&netlink.Route{Dst: destination, Gw: net.ParseIP(via)})
}

func (kernelRoutes) remove(podNetwork string) error {
	_, destination, err := net.ParseCIDR(podNetwork)
	if err != nil {
		return err
	}
	err = netlink.RouteDel(&netlink.Route{Dst: destination})
	if errors.Is(err, syscall.ESRCH) {
		return nil // it is gone already
	}
	return err
}
