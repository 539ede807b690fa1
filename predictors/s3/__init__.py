"""S³, the baseline: one DistilBERT for all classes that sorts outputs into buckets.

Source: Jin et al., "S³: Increasing GPU Utilization during Generative Inference for
Higher Throughput", NeurIPS 2023, section 4: a DistilBERT sequence classifier, ten
buckets of equal width up to the longest output.
"""

from justitia.predictors.s3.predictor import S3, create_s3, load_s3

__all__ = ["S3", "create_s3", "load_s3"]
