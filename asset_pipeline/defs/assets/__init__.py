"""The assets of a month, one file each: source_documents, then validated_images, then manifests, of which
image_gallery and image_catalogue are made; and the rules."""
