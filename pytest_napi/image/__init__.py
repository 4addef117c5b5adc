# SPDX-License-Identifier: GPL-2.0-only
"""What a kernel boots into: initramfs images and the guest programs in them."""
