package vfs

const xattrCapability = "security.capability"
