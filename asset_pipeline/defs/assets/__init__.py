"""The assets of a month, one file each: source_documents, then validated_images, then manifests; and the rules."""
